import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { User } from '../../../client/src/index.ts'
import { api } from '../client.ts'
import { Empty } from '../parts/empty.tsx'
import { Head } from '../parts/head.tsx'
import { Icon } from '../parts/icon.tsx'
import { usePages } from '../parts/pages.tsx'
import { Face } from '../parts/person.tsx'
import { type Column, Listing, Loading } from '../parts/table.tsx'
import { pauseMs } from '../parts/user-picker.tsx'
import { announce } from '../state/messages.ts'
import { nameKnown } from '../state/names.ts'
import { filterBy, query } from '../state/query.ts'
import { go, href } from '../state/route.ts'
import { resuming, visits, who } from '../state/session.ts'
import { searchLength, userPage } from '../state/users.ts'
import { UserForm } from './user-form.tsx'

/** All users, for those who may see them. */
export function Users() {
  return resuming.value ? <Loading /> : <UserList key={visits.value} />
}

const columns: readonly Column<User>[] = [
  {
    title: 'Name',
    cell: user => (
      <span class="who">
        <Face name={user.name} />
        <span>
          <a href={href('users', user.id)}>
            <bdi>{user.name}</bdi>
          </a>{' '}
          <span class="muted number">#{user.id}</span>
        </span>
        {user.id === who.value?.id && <span class="badge accent">you · {who.value.role}</span>}
      </span>
    ),
  },
  { title: 'E-mail', cell: ({ email }) => email },
  { title: 'Age', end: true, place: 'corner', labelled: true, cell: ({ age }) => age ?? '–' },
]

function UserList() {
  const creating = useSignal(false)
  const q = query.value.get('q') ?? ''
  const paged = usePages({
    kept: userPage,
    filter: q,
    size: 10,
    list: options => api.users.list({ ...options, ...(q !== '' && { q }) }),
  })
  const { page } = paged
  useEffect(() => {
    if (page === undefined) return
    nameKnown(page.items)
    if (page.filter !== '') announce(`Found: ${page.items.length}${page.more ? ' and more' : ''}`)
  }, [page])
  const create = () => {
    creating.value = true
  }
  return (
    <>
      <Head title="Users" text="Find a person, see what they ordered and wrote, change their profile or role.">
        <button type="button" class="primary" onClick={create}>
          <Icon name="plus" /> New user
        </button>
      </Head>
      <Search q={q} />
      <Listing
        caption={q === '' ? 'Users by their number' : 'Users that were found'}
        columns={columns}
        paged={paged}
        empty={
          <Empty icon="users" title={q === '' ? 'There are no users yet' : `No name or e-mail begins with “${q}”`}>
            <p>{q === '' ? 'Create the first one.' : 'Type how it begins: a family name alone is not found.'}</p>
            <button type="button" onClick={create}>
              Create a user
            </button>
          </Empty>
        }
      />
      {creating.value && (
        <UserForm
          email={q.includes('@') ? q : ''}
          onClose={() => {
            creating.value = false
          }}
          onSaved={user => go('users', user.id)}
        />
      )}
    </>
  )
}

/** What is searched for. Fewer letters show all users. */
function wantedIn(typed: string): string {
  const text = typed.trim()
  return text.length < searchLength.least ? '' : text
}

/** Searches while one types. The address keeps what is searched for. */
function Search({ q }: { readonly q: string }) {
  const typed = useSignal(q)
  /** Runs while the address does not have yet what is typed. */
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  useEffect(() => {
    if (timer.current === undefined && wantedIn(typed.peek()) !== q) typed.value = q // another address was opened
  }, [q])
  useEffect(() => () => clearTimeout(timer.current), [])
  return (
    <search class="toolbar">
      <div class="field search">
        <label for="users-search">Find by name or e-mail</label>
        <Icon name="search" />
        <input
          id="users-search"
          type="search"
          value={typed.value}
          maxLength={searchLength.most}
          autocomplete="off"
          spellcheck={false}
          placeholder="Two letters are enough"
          onInput={event => {
            typed.value = event.currentTarget.value
            clearTimeout(timer.current)
            timer.current = setTimeout(() => {
              timer.current = undefined
              filterBy({ q: wantedIn(typed.peek()) })
            }, pauseMs)
          }}
          onKeyDown={event => {
            if (event.key === 'ArrowDown') document.querySelector<HTMLElement>('.listing td a')?.focus()
          }}
        />
      </div>
    </search>
  )
}
