import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { User } from '../../../client/src/index.ts'
import { api } from '../client.ts'
import { useReading } from '../parts/action.tsx'
import { Confirm } from '../parts/confirm.tsx'
import { Empty } from '../parts/empty.tsx'
import { Field, textsOf } from '../parts/field.tsx'
import { Head } from '../parts/head.tsx'
import { Icon } from '../parts/icon.tsx'
import { Notice } from '../parts/notice.tsx'
import { Face, RoleBadge } from '../parts/person.tsx'
import { toast } from '../state/messages.ts'
import { visits, who } from '../state/session.ts'
import { readNextUsers, readPreviousUsers, readUsers, readUsersAgain, showUsers, userPage } from '../state/users.ts'
import { UserForm } from './user-form.tsx'

type Task = { readonly name: 'create' } | { readonly name: 'edit' | 'delete'; readonly user: User }

export function Users() {
  const task = useSignal<Task | undefined>(undefined)
  const reading = useReading()
  const close = () => {
    task.value = undefined
  }
  useEffect(() => {
    const { email, trail } = userPage.peek() ?? { email: '' }
    reading.run(() => readUsers(email, trail), showUsers)
  }, [visits.value])
  const page = userPage.value
  return (
    <>
      <Head title="Users" text="Everybody who has an account.">
        <button
          type="button"
          class="primary"
          onClick={() => {
            task.value = { name: 'create' }
          }}
        >
          <Icon name="plus" /> New user
        </button>
      </Head>
      <Search email={page?.email ?? ''} onSearch={email => reading.run(() => readUsers(email), showUsers)} />
      <Notice problem={reading.problem} onAgain={reading.again} />
      {page !== undefined && reading.problem === undefined && (
        <>
          <UserTable
            users={page.items}
            email={page.email}
            onTask={chosen => {
              task.value = chosen
            }}
          />
          {(page.more || page.trail.length > 1) && (
            <nav class="pager" aria-label="Pages of the list">
              <button
                type="button"
                disabled={page.trail.length < 2 || reading.busy}
                onClick={() => reading.run(() => readPreviousUsers(page), showUsers)}
              >
                Previous
              </button>
              <span class="muted">Page {page.trail.length}</span>
              <button
                type="button"
                disabled={!page.more || reading.busy}
                onClick={() => reading.run(() => readNextUsers(page), showUsers)}
              >
                Next
              </button>
            </nav>
          )}
        </>
      )}
      {task.value?.name === 'create' && <UserForm onClose={close} email={page?.items.length === 0 ? page.email : ''} />}
      {task.value?.name === 'edit' && <UserForm onClose={close} user={task.value.user} />}
      {task.value?.name === 'delete' && <DeleteUser user={task.value.user} onClose={close} />}
    </>
  )
}

function Search({ email, onSearch }: { readonly email: string; readonly onSearch: (email: string) => void }) {
  return (
    <search>
      <form
        class="toolbar"
        onSubmit={event => {
          event.preventDefault()
          onSearch((textsOf(event.currentTarget).email ?? '').trim())
        }}
      >
        <Field label="Find by e-mail" name="email" type="search" defaultValue={email} placeholder="ada@example.com" />
        <button type="submit">
          <Icon name="search" /> Search
        </button>
        {email !== '' && (
          <button type="reset" class="quiet" onClick={() => onSearch('')}>
            Show all
          </button>
        )}
      </form>
    </search>
  )
}

interface TableProps {
  readonly users: readonly User[]
  readonly email: string
  readonly onTask: (task: Task) => void
}

function UserTable({ users, email, onTask }: TableProps) {
  if (users.length === 0) {
    return (
      <Empty icon="users" title={email === '' ? 'There are no users yet' : 'Nobody has this e-mail'}>
        <p>{email === '' ? 'Create the first one.' : 'The whole address is compared; capitals do not matter.'}</p>
        <button type="button" onClick={() => onTask({ name: 'create' })}>
          {email === '' ? 'Create a user' : 'Create a user with it'}
        </button>
      </Empty>
    )
  }
  return (
    <div class="card">
      <table class="table stack">
        <caption class="visually-hidden">Users by their number</caption>
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">E-mail</th>
            <th scope="col">Age</th>
            <th scope="col">
              <span class="visually-hidden">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {users.map(user => (
            <tr key={user.id}>
              <td>
                <span class="who">
                  <Face name={user.name} />
                  <span>
                    <bdi>{user.name}</bdi> <span class="muted number">#{user.id}</span>
                  </span>
                  {user.id === who.value?.id && (
                    <>
                      <span class="badge">you</span>
                      <RoleBadge role={who.value.role} />
                    </>
                  )}
                </span>
              </td>
              <td>{user.email}</td>
              <td class="number" data-label={user.age === undefined ? undefined : 'Age'}>
                {user.age}
              </td>
              <td>
                <span class="actions end">
                  <button
                    type="button"
                    class="quiet icon-only"
                    aria-label={`Edit ${user.name}`}
                    onClick={() => onTask({ name: 'edit', user })}
                  >
                    <Icon name="edit" />
                  </button>
                  <button
                    type="button"
                    class="quiet icon-only"
                    aria-label={`Delete ${user.name}`}
                    onClick={() => onTask({ name: 'delete', user })}
                  >
                    <Icon name="trash" />
                  </button>
                </span>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function DeleteUser({ user, onClose }: { readonly user: User; readonly onClose: () => void }) {
  return (
    <Confirm
      title={`Delete ${user.name}?`}
      verb="Delete the user"
      onClose={onClose}
      work={async () => {
        await api.users.delete(user)
        toast(`${user.name} is deleted`)
        await readUsersAgain()
      }}
    >
      The posts and comments of {user.name} go, too. Orders and payments stay.
    </Confirm>
  )
}
