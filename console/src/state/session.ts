import { computed, signal } from '@preact/signals'
import { connect, DuetError, isDuetError } from '../../../client/src/index.ts'
import { api, duet } from '../client.ts'
import { serviceUrl, settings } from '../settings.ts'
import { logRequest } from './requests.ts'
import { go } from './route.ts'

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
  const asked = {
    reason: earlier?.reason ?? reason,
    answer: (signedIn: boolean) => {
      if (question.peek() === asked) question.value = undefined
      resolve(signedIn)
      earlier?.answer(signedIn)
    },
  }
  question.value = asked
  return promise
}

export async function signIn(email: string, password: string): Promise<void> {
  try {
    await duet.signIn({ email, password })
  } catch (error) {
    if (!isDuetError(error, 'unauthenticated')) throw error
    throw new DuetError('badInput', 'The e-mail or the password is wrong')
  }
  await reading
}

export async function signOut(everywhere: boolean): Promise<void> {
  await duet.signOut({ everywhere })
}

/** Changes the password of the signed-in user. This ends all sessions of the user, so a new one is begun here. */
export async function changePassword(present: string, next: string): Promise<void> {
  const { id, email } = await confirmPassword(present)
  await whileSessionEnds(async () => {
    await api.users.update(id, { password: next })
    await duet.signIn({ email, password: next })
  })
}

export async function deleteAccount(present: string): Promise<void> {
  const { id } = await confirmPassword(present)
  await whileSessionEnds(async () => {
    await api.users.delete(id)
    await duet.signOut()
    see(undefined)
  })
}

/** Rejects if this is not the password of the signed-in user. The sign-in that finds out is not the page's session. */
async function confirmPassword(password: string): Promise<Person> {
  const person = who.peek()
  if (person === undefined) throw new DuetError('unauthenticated', 'Nobody is signed in')
  const other = connect({ url: serviceUrl, onRequest: logRequest })
  try {
    await other.signIn({ email: person.email, password })
  } catch (error) {
    if (!isDuetError(error, 'unauthenticated')) throw error
    throw new DuetError('badInput', 'present is wrong') // the name of the field
  } finally {
    other.close()
  }
  return person
}

/** Whether the end of the session is the user's own wish, so that nobody is asked to sign in again. */
let isEnding = false

async function whileSessionEnds(work: () => Promise<void>): Promise<void> {
  isEnding = true
  try {
    await work()
  } finally {
    isEnding = false
    if (who.peek() !== undefined && duet.session === undefined) askAfterEnd()
  }
}

/** The page that sent the user here to sign in. */
const backName = 'duet-back'

export function comeBackTo(address: string): void {
  sessionStorage.setItem(backName, address)
}

/** Leads a user who has signed in back to the page that wanted it. */
export function comeBack(): void {
  const back = sessionStorage.getItem(backName)
  sessionStorage.removeItem(backName)
  if (back === null) go('feed', undefined, { replace: true })
  else location.replace(back)
}

/** After a reload the token is still stored. */
export async function resumeSession(): Promise<void> {
  try {
    const { session } = duet
    const known = remembered()
    if (session !== undefined && known?.id === session.userId) see({ ...known, role: session.role })
    else if (session !== undefined) await readOneself()
  } catch {
    // The user stays unknown. Requests that need a session will report the error.
  }
  resuming.value = false
}

/**
 * Runs `work`. If the session has ended, it asks the user to sign in again and then repeats the work. If another user
 * has signed in, it repeats only what anyone may do, such as reading.
 */
export async function withSession<Result>(work: () => Promise<Result>, { byAnyone = false } = {}): Promise<Result> {
  const before = who.peek()
  try {
    return await work()
  } catch (error) {
    const ended = before !== undefined && isDuetError(error, 'unauthenticated')
    if (!ended || !(await askToSignIn('ended'))) throw error
    if (byAnyone || who.peek()?.id === before.id) return work()
    throw new DuetError('conflict', 'Somebody else has signed in, so this was not done')
  }
}

/** Whether the signed-in user may change content of this author. The service decides; this only hides buttons. */
export function mayChange(author: { readonly id: string }): boolean {
  return who.value !== undefined && (who.value.role === 'admin' || String(who.value.id) === author.id)
}

/** If this is the signed-in user, updates the name and e-mail that are shown. */
export function userChanged({ id, name, email }: Pick<Person, 'id' | 'name' | 'email'>): void {
  const person = who.peek()
  if (person?.id === id) see({ ...person, name, email })
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
  remember(person)
}

/** The signed-in user, so that the next page or reload need not ask for the name. */
const rememberedName = 'duet-person'
const rememberedMs = 600_000

function remember(person: Person | undefined): void {
  try {
    if (person === undefined) localStorage.removeItem(rememberedName)
    else localStorage.setItem(rememberedName, JSON.stringify({ ...person, until: Date.now() + rememberedMs }))
  } catch {
    // Without room the name is asked for each time.
  }
}

function remembered(): Person | undefined {
  try {
    const { until = 0, ...person } = JSON.parse(localStorage.getItem(rememberedName) ?? '{}')
    return Date.now() < until && until <= Date.now() + rememberedMs ? person : undefined
  } catch {
    return undefined // another program has written it
  }
}

/** The latest read of the signed-in user. */
let reading = Promise.resolve()

// Users may also sign in and out on another page.
duet.onSession((_session, change) => {
  if (change === 'signedOut' && !isEnding) see(undefined)
  if (change === 'signedIn') {
    reading = readOneself()
    // `signIn` reports an error; after a sign-in elsewhere the user stays unknown.
    reading.then(() => question.peek()?.answer(true)).catch(() => {})
  }
  if (change === 'ended' && who.peek() !== undefined && !isEnding) askAfterEnd()
})

/** The user name stays until the user signs in or declines, so that no draft disappears. */
async function askAfterEnd(): Promise<void> {
  if (!(await askToSignIn('ended'))) see(undefined)
}
