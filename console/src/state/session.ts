import { signal } from '@preact/signals'
import { isDuetError } from '../../../client/src/index.ts'
import { api, duet } from '../client.ts'

export interface Person {
  readonly id: number
  readonly name: string
  readonly email: string
  readonly role: string
}

/** Who is signed in, if somebody is. */
export const who = signal<Person | undefined>(undefined)

/** Whether there is a session whose person is not known yet. */
export const resuming = signal(duet.session !== undefined)

/** Counts the people who came and went: what is shown may depend on who looks. */
export const visits = signal(0)

type Reason = 'wanted' | 'ended'

/** The question that the sign-in window asks now. */
export const question = signal<{ readonly reason: Reason; readonly answer: (signedIn: boolean) => void } | undefined>(
  undefined,
)

/** Shows the sign-in window above whatever is on the page. Returns whether somebody signed in. */
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
  await readOneself()
}

export async function signOut(everywhere: boolean): Promise<void> {
  await duet.signOut({ everywhere })
  see(undefined)
}

/** After a reload: the token is still here. */
export async function resumeSession(): Promise<void> {
  try {
    if (duet.session !== undefined) await readOneself()
  } catch {
    // The person stays unknown. Whatever needs a session says so.
  }
  resuming.value = false
}

/** Does something. If the session turns out to be over, it asks to sign in again and then does it once more. */
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

/** Whether the person who is signed in may change what this author wrote. The service decides; this only hides buttons. */
export function mayChange(author: { readonly id: string }): boolean {
  return who.value !== undefined && (who.value.role === 'admin' || String(who.value.id) === author.id)
}

/** If this user is the one who is signed in, the new name and e-mail are shown everywhere. */
export function userChanged({ id, name, email }: Pick<Person, 'id' | 'name' | 'email'>): void {
  const person = who.peek()
  if (person?.id === id) who.value = { ...person, name, email }
}

async function readOneself(): Promise<void> {
  const { id, name, email } = await api.users.me()
  see({ id, name, email, role: duet.session?.role ?? '' })
}

function see(person: Person | undefined): void {
  if (person?.id !== who.peek()?.id) visits.value++
  who.value = person
}

duet.onSession((_session, change) => {
  if (change !== 'ended' || who.peek() === undefined) return
  // The name stays until somebody signs in or declines, so that nothing that was written disappears.
  askToSignIn('ended').then(signedIn => {
    if (!signedIn) see(undefined)
  })
})
