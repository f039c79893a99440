import { signal } from '@preact/signals'
import type { User } from '../../../client/src/index.ts'
import { api } from '../client.ts'
import { visits } from './session.ts'

const pageSize = 10

export interface UserPage {
  readonly items: readonly User[]
  readonly more: boolean
  /** The `after` ids of this page and of all pages before it; `undefined` for the first page. */
  readonly trail: readonly (number | undefined)[]
  /** The e-mail of the search, or an empty string. */
  readonly email: string
}

/** The current page of the list. */
export const userPage = signal<UserPage | undefined>(undefined)

// The next user may not be allowed to see what the former one has read.
visits.subscribe(() => {
  userPage.value = undefined
})

export async function readUsers(email: string, trail: UserPage['trail'] = [undefined]): Promise<UserPage> {
  const after = trail.at(-1)
  const options = { limit: pageSize, ...(email !== '' && { email }), ...(after !== undefined && { after }) }
  const { items, more } = await api.users.list(options).first()
  return { items, more, trail, email }
}

export function readNextUsers({ email, trail, items }: UserPage): Promise<UserPage> {
  return readUsers(email, [...trail, items.at(-1)?.id])
}

export function readPreviousUsers({ email, trail }: UserPage): Promise<UserPage> {
  return readUsers(email, trail.slice(0, -1))
}

export function showUsers(page: UserPage): void {
  userPage.value = page
}

/** Reads the current page again, after a change. */
export async function readUsersAgain(): Promise<void> {
  const page = userPage.peek()
  if (page !== undefined) showUsers(await readUsers(page.email, page.trail))
}
