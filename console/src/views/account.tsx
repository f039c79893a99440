import { useEffect, useRef } from 'preact/hooks'
import { useAction } from '../parts/action.tsx'
import { Icon } from '../parts/icon.tsx'
import { Face, RoleBadge } from '../parts/person.tsx'
import { toast } from '../state/messages.ts'
import { askToSignIn, resuming, signOut, who } from '../state/session.ts'

/** The signed-in user with a menu, or the button to sign in. */
export function Account() {
  const person = who.value
  if (resuming.value) return null
  if (person === undefined) {
    return (
      <button type="button" class="primary" onClick={() => askToSignIn('wanted')}>
        Sign in
      </button>
    )
  }
  return <Menu name={person.name} email={person.email} role={person.role} />
}

function Menu({ name, email, role }: { readonly name: string; readonly email: string; readonly role: string }) {
  const details = useRef<HTMLDetailsElement>(null)
  const { busy, run } = useAction()
  const leave = (everywhere: boolean) =>
    run(async () => {
      await signOut(everywhere)
      toast(everywhere ? 'You are signed out on all devices' : 'You are signed out')
    })
  useEffect(() => {
    const close = (event: Event) => {
      const element = details.current
      if (element?.open !== true) return
      if (event instanceof KeyboardEvent && event.key === 'Escape') element.querySelector('summary')?.focus()
      else if (event instanceof KeyboardEvent || element.contains(event.target as Node)) return
      element.open = false
    }
    addEventListener('keydown', close)
    addEventListener('pointerdown', close)
    return () => {
      removeEventListener('keydown', close)
      removeEventListener('pointerdown', close)
    }
  }, [])
  return (
    <details class="account" ref={details}>
      <summary>
        <Face name={name} />
        <span class="account-name">{name}</span>
      </summary>
      <div class="menu">
        <p>
          <b>{name}</b> <RoleBadge role={role} />
          <span>{email}</span>
        </p>
        <button type="button" class="quiet" disabled={busy} onClick={() => leave(false)}>
          <Icon name="out" /> Sign out
        </button>
        <button type="button" class="quiet" disabled={busy} onClick={() => leave(true)}>
          <Icon name="lock" /> Sign out everywhere
        </button>
      </div>
    </details>
  )
}
