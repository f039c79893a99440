import { useEffect, useRef } from 'preact/hooks'
import { useAction } from '../parts/action.tsx'
import { Icon } from '../parts/icon.tsx'
import { Notice } from '../parts/notice.tsx'
import { Face, RoleBadge } from '../parts/person.tsx'
import { consoleUrl } from '../settings.ts'
import { toast } from '../state/messages.ts'
import { href, route } from '../state/route.ts'
import { askToSignIn, resuming, signOut, who } from '../state/session.ts'

/** The signed-in user with a menu, or the button to sign in. */
export function Account() {
  const person = who.value
  if (resuming.value) return null
  if (person === undefined) {
    if (route.value.name === 'sign-in' || route.value.name === 'sign-up') return null // the page itself asks
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
  const { busy, problem, run, again } = useAction()
  const leave = (everywhere: boolean) =>
    run(async () => {
      await signOut(everywhere)
      toast(everywhere ? 'You are signed out on all devices' : 'You are signed out')
    })
  const close = () => {
    if (details.current !== null) details.current.open = false
  }
  useEffect(() => {
    const closeBy = (event: Event) => {
      const element = details.current
      if (element?.open !== true) return
      if (event instanceof KeyboardEvent && event.key === 'Escape') element.querySelector('summary')?.focus()
      else if (event instanceof KeyboardEvent || element.contains(event.target as Node)) return
      element.open = false
    }
    addEventListener('keydown', closeBy)
    addEventListener('pointerdown', closeBy)
    return () => {
      removeEventListener('keydown', closeBy)
      removeEventListener('pointerdown', closeBy)
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
        <a class="button quiet" href={consoleUrl + href('account')} onClick={close}>
          <Icon name="account" /> Account
        </a>
        <button type="button" class="quiet" disabled={busy} onClick={() => leave(false)}>
          <Icon name="out" /> Sign out
        </button>
        <button type="button" class="quiet" disabled={busy} onClick={() => leave(true)}>
          <Icon name="lock" /> Sign out on all devices
        </button>
        <Notice problem={problem} onAgain={again} />
      </div>
    </details>
  )
}
