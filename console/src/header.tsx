import { effect } from '@preact/signals'
import { render } from 'preact'
import { duet } from './client.ts'
import { accountSlot, consoleUrl } from './settings.ts'
import { comeBackTo, question, resumeSession } from './state/session.ts'
import { Account } from './views/account.tsx'

// The account in the header of all pages but the console, and the session for their scripts.

export { token } from './client.ts'

/** Calls the function after a sign-in or the end of a session, on this page or another. */
export function onNextUser(next: () => void): void {
  duet.onSession((_session, change) => {
    if (change !== 'renewed') next()
  })
}

/** Done when a session of an earlier visit is renewed, or has ended. */
export const resumed: Promise<void> = resumeSession()

render(<Account />, accountSlot)

// The dialog to sign in is on the console only. A reader whose session has ended stays on the page.
effect(() => {
  const asked = question.value
  if (asked?.reason === 'ended') asked.answer(false)
  if (asked?.reason !== 'wanted') return
  comeBackTo(location.href)
  location.assign(`${consoleUrl}#/sign-in`)
})
