import { signal } from '@preact/signals'
import type { User } from '../../../client/src/index.ts'
import { api } from '../client.ts'

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

export async function readUsers(email: string, trail: UserPage['trail'] = [undefined]): Promise<void> {
  const after = trail.at(-1)
  const options = { limit: pageSize, ...(email !== '' && { email }), ...(after !== undefined && { after }) }
  const { items, more } = await api.users.list(options).first()
  userPage.value = { items, more, trail, email }
}

export async function nextUsers(): Promise<void> {
  const page = userPage.peek()
  if (page !== undefined) await readUsers(page.email, [...page.trail, page.items.at(-1)?.id])
}

export async function previousUsers(): Promise<void> {
  const page = userPage.peek()
  if (page !== undefined) await readUsers(page.email, page.trail.slice(0, -1))
}

/** Reads the current page again, after a change. */
export async function readUsersAgain(): Promise<void> {
  const page = userPage.peek()
  if (page !== undefined) await readUsers(page.email, page.trail)
}
