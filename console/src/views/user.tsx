import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { User } from '../../../client/src/index.ts'
import { api } from '../client.ts'
import { useReading } from '../parts/action.tsx'
import { Confirm } from '../parts/confirm.tsx'
import { Empty } from '../parts/empty.tsx'
import { Fact } from '../parts/fact.tsx'
import { useTitle } from '../parts/head.tsx'
import { Icon } from '../parts/icon.tsx'
import { Notice } from '../parts/notice.tsx'
import { Face } from '../parts/person.tsx'
import { Loading } from '../parts/table.tsx'
import { Age } from '../parts/time.tsx'
import { toast } from '../state/messages.ts'
import { nameKnown } from '../state/names.ts'
import { ofThisVisit } from '../state/pages.ts'
import { go, href } from '../state/route.ts'
import { resuming, visits, who } from '../state/session.ts'
import { findUser } from '../state/users.ts'
import { OrdersOf, PaymentsOf, PostsOf } from './user-activity.tsx'
import { UserForm } from './user-form.tsx'
import { RoleButton } from './user-role.tsx'

/** One user: profile and role, orders, payments and posts. */
export function UserPage({ id }: { readonly id: string }) {
  return resuming.value ? <Loading /> : <Profile key={visits.value} id={Number(id)} />
}

function Profile({ id }: { readonly id: number }) {
  const user = useSignal<User | 'absent' | undefined>(undefined)
  const joined = useSignal<string | undefined>(undefined)
  const reading = useReading()
  useEffect(() => {
    reading.run(
      () => findUser(id),
      found => {
        user.value = found ?? 'absent'
        if (found !== undefined) nameKnown([found])
      },
    )
  }, [])
  const shown = user.value
  useTitle(shown === undefined || shown === 'absent' ? `User ${id}` : shown.name)
  return (
    <>
      <p class="back">
        <a href={href('users')}>All users</a>
      </p>
      <Notice problem={reading.problem} onAgain={reading.again} />
      {(shown === undefined || shown === 'absent') && <h1 class="visually-hidden">User {id}</h1>}
      {shown === undefined && reading.problem === undefined && <Loading />}
      {shown === 'absent' && (
        <Empty icon="users" title="There is no such user">
          <p>The account was deleted, or it never existed.</p>
        </Empty>
      )}
      {shown !== undefined && shown !== 'absent' && (
        <>
          <Card
            user={shown}
            joined={joined.value}
            onSaved={saved => {
              user.value = saved
            }}
          />
          <OrdersOf id={id} />
          <PaymentsOf id={id} />
          <PostsOf
            id={id}
            onJoined={at => {
              joined.value = at
            }}
          />
        </>
      )}
    </>
  )
}

interface CardProps {
  readonly user: User
  readonly joined: string | undefined
  readonly onSaved: (user: User) => void
}

function Card({ user, joined, onSaved }: CardProps) {
  const task = useSignal<'edit' | 'delete' | undefined>(undefined)
  const close = () => {
    task.value = undefined
  }
  return (
    <section class="card panel profile" aria-label="Profile">
      <Face name={user.name} />
      <div class="profile-text">
        <h1>
          <bdi>{user.name}</bdi>
        </h1>
        <p>
          <a href={`mailto:${user.email}`}>{user.email}</a>
        </p>
        <dl class="facts">
          <Fact name="Number">{user.id}</Fact>
          {user.age !== undefined && <Fact name="Age">{user.age}</Fact>}
          {joined !== undefined && (
            <Fact name="Joined">
              <Age of={joined} />
            </Fact>
          )}
        </dl>
        {who.value?.role === 'admin' && <RoleButton user={user} />}
      </div>
      <div class="actions">
        <button
          type="button"
          onClick={() => {
            task.value = 'edit'
          }}
        >
          <Icon name="edit" /> Edit
        </button>
        <button
          type="button"
          class="danger"
          onClick={() => {
            task.value = 'delete'
          }}
        >
          <Icon name="trash" /> Delete
        </button>
      </div>
      {task.value === 'edit' && <UserForm user={user} onClose={close} onSaved={onSaved} />}
      {task.value === 'delete' && (
        <Confirm
          title={`Delete ${user.name}?`}
          verb="Delete the user"
          onClose={close}
          work={async () => {
            await ofThisVisit(api.users.delete(user.id))
            toast(`${user.name} is deleted`)
            go('users', undefined, { replace: true })
          }}
        >
          The posts and comments of {user.name} go, too. Orders and payments stay.
        </Confirm>
      )}
    </section>
  )
}
