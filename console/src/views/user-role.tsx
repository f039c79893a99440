import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { User } from '../../../client/src/index.ts'
import { api } from '../client.ts'
import { useReading } from '../parts/action.tsx'
import { Confirm } from '../parts/confirm.tsx'
import { Notice } from '../parts/notice.tsx'
import { RoleBadge } from '../parts/person.tsx'
import { toast } from '../state/messages.ts'
import { ofThisVisit } from '../state/pages.ts'
import { who } from '../state/session.ts'

type Role = 'admin' | 'member'

/** The role of a user, and the button that changes it. For admins. */
export function RoleButton({ user }: { readonly user: User }) {
  const role = useSignal<Role | undefined>(undefined)
  const asking = useSignal(false)
  const reading = useReading()
  useEffect(() => {
    reading.run(
      () => api.users.role(user.id),
      read => {
        role.value = read
      },
    )
  }, [user.id])
  if (role.value === undefined) return <Notice problem={reading.problem} onAgain={reading.again} />
  const next = role.value === 'admin' ? 'member' : 'admin'
  const change = next === 'admin' ? 'Make an admin' : 'Make a member'
  return (
    <>
      <p class="role">
        <RoleBadge role={role.value} />
        <span class="muted">{powers[role.value]}</span>
        <button
          type="button"
          class="quiet"
          onClick={() => {
            asking.value = true
          }}
        >
          {change}
        </button>
      </p>
      {asking.value && (
        <Confirm
          title={`${change}: ${user.name}?`}
          verb={change}
          onClose={() => {
            asking.value = false
          }}
          work={async () => {
            role.value = await ofThisVisit(api.users.setRole(user.id, next))
            toast(`${user.name} is ${next === 'admin' ? 'an admin' : 'a member'} now`)
          }}
        >
          {user.id === who.value?.id
            ? 'You are signed out everywhere and sign in again in the new role.'
            : `${user.name} is signed out everywhere and signs in again in the new role.`}{' '}
          {powers[next]}
        </Confirm>
      )}
    </>
  )
}

const powers: Readonly<Record<Role, string>> = {
  admin: 'An admin sees and changes everything.',
  member: 'A member changes only what is theirs.',
}
