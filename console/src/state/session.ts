import { computed, signal } from '@preact/signals'
import { isDuetError } from '../../../client/src/index.ts'
import { api, duet } from '../client.ts'
import { settings } from '../settings.ts'
import { go, route } from './route.ts'

export interface Person {
  readonly id: number
  readonly name: string
  readonly email: string
  readonly role: string
}

/** The signed-in user, if any. */
export const who = signal<Person | undefined>(undefined)

/** Whether the service shows data of all users to this one. The service decides; this only hides what it would refuse. */
export const seesAll = computed(() => settings.policy === 'open' || who.value?.role === 'admin')

/** Whether there is a session whose user is not known yet. */
export const resuming = signal(duet.session !== undefined)

/** Changes with each sign-in and sign-out, because some data depends on the user. */
export const visits = signal(0)

type Reason = 'wanted' | 'ended'

/** The open question of the sign-in dialog. */
export const question = signal<{ readonly reason: Reason; readonly answer: (signedIn: boolean) => void } | undefined>(
  undefined,
)

/** Shows the sign-in dialog over the current page. Returns whether the user signed in. */
export function askToSignIn(reason: Reason): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const earlier = question.peek()
  question.value = {
    reason: earlier?.reason ?? reason,
    answer: signedIn => {
      question.value = undefined
      resolve(signedIn)
      earlier?.answer(signedIn)
    },
  }
  return promise
}

export async function signIn(email: string, password: string): Promise<void> {
  await duet.signIn({ email, password })
  await reading
}

export async function signOut(everywhere: boolean): Promise<void> {
  await duet.signOut({ everywhere })
}

/** The page that sent the user here to sign in. */
const backName = 'duet-back'

export function comeBackTo(address: string): void {
  sessionStorage.setItem(backName, address)
}

/** At the address `#/sign-in`, asks the user to sign in, and then leads back to the page that wanted it. */
export async function signInIfAsked(): Promise<void> {
  if (route.peek().name !== 'sign-in') return
  const signedIn = who.peek() !== undefined || (await askToSignIn('wanted'))
  const back = sessionStorage.getItem(backName)
  sessionStorage.removeItem(backName)
  if (signedIn && back !== null) location.replace(back)
  else go('feed', undefined, { replace: true })
}

/** After a reload the token is still stored. */
export async function resumeSession(): Promise<void> {
  try {
    if (duet.session !== undefined) await readOneself()
  } catch {
    // The user stays unknown. Requests that need a session will report the error.
  }
  resuming.value = false
}

/** Runs `work`. If the session has ended, it asks the user to sign in again and then repeats the work. */
export async function withSession<Result>(work: () => Promise<Result>): Promise<Result> {
  const before = who.peek()
  try {
    return await work()
  } catch (error) {
    const ended = before !== undefined && isDuetError(error, 'unauthenticated')
    if (!ended || !(await askToSignIn('ended'))) throw error
    return work()
  }
}

/** Whether the signed-in user may change content of this author. The service decides; this only hides buttons. */
export function mayChange(author: { readonly id: string }): boolean {
  return who.value !== undefined && (who.value.role === 'admin' || String(who.value.id) === author.id)
}

/** If this is the signed-in user, updates the name and e-mail that are shown. */
export function userChanged({ id, name, email }: Pick<Person, 'id' | 'name' | 'email'>): void {
  const person = who.peek()
  if (person?.id === id) who.value = { ...person, name, email }
}

async function readOneself(): Promise<void> {
  const { id, name, email } = await api.users.me()
  const { session } = duet
  // Otherwise the user has signed out while the answer was on its way.
  if (session?.userId === id) see({ id, name, email, role: session.role })
}

function see(person: Person | undefined): void {
  if (person?.id !== who.peek()?.id) visits.value++
  who.value = person
}

/** The latest read of the signed-in user. */
let reading = Promise.resolve()

// Users may also sign in and out on another page.
duet.onSession((_session, change) => {
  if (change === 'signedOut') see(undefined)
  if (change === 'signedIn') {
    reading = readOneself()
    reading.catch(() => {}) // `signIn` reports it; after a sign-in elsewhere the user stays unknown
  }
  if (change !== 'ended' || who.peek() === undefined) return
  // The user name stays until the user signs in or declines, so that no draft disappears.
  askToSignIn('ended').then(signedIn => {
    if (!signedIn) see(undefined)
  })
})
