import assert from 'node:assert/strict'
import { ask, type RawResponse, type Served } from './http.ts'

export interface UserBody {
  readonly id: number
  readonly name: string
  readonly email: string
  readonly age?: number
  readonly avatar?: string
}

export interface OrderBody {
  readonly id: number
  readonly status: string
  readonly amount: number
  readonly created_at: string
  readonly user_id: number | null
  readonly _links: Readonly<Record<string, { readonly href: string; readonly method?: string }>>
}

export interface PaymentBody {
  readonly id: number
  readonly amount: number
  readonly order_id: number | null
  readonly created_at: string
}

/** One request, in a short form: `send(app, 'PUT /users/1', { name, email }, token)`. */
export const send = (app: Served, line: string, body?: unknown, token?: string): Promise<RawResponse> =>
  sendText(app, line, body === undefined ? undefined : JSON.stringify(body), token)

/** Sends a body that `JSON.stringify` cannot produce. */
export function sendText(app: Served, line: string, text?: string, token?: string, own: Headers = {}) {
  const [method = '', path = ''] = line.split(' ')
  const headers = {
    ...(text !== undefined && { 'content-type': 'application/json' }),
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
    ...own,
  }
  return ask(app.url + path, { method, headers, ...(text !== undefined && { body: text }) })
}

type Headers = Readonly<Record<string, string>>

/** Sends this many requests at once; each gets its index. */
export const atOnce = <Answer>(count: number, request: (index: number) => Promise<Answer>): Promise<Answer[]> =>
  Promise.all(Array.from({ length: count }, (_, index) => request(index)))

/** The number of answers with each status. */
export function tally(answers: readonly RawResponse[]): Readonly<Record<number, number>> {
  const counts: Record<number, number> = {}
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1
  return counts
}

/** The body of an answer that must have this status. */
export function bodyOf<Body = UserBody>(response: RawResponse, status = 200): Body {
  assert.equal(response.status, status, response.body)
  assert.match(response.headers.get('content-type') ?? '', /^application\/json(; charset=utf-8)?$/)
  return JSON.parse(response.body) as Body
}

/** Creates a user; only the fields that matter to the test are needed. */
export const createUser = async (app: Served, values: object = {}): Promise<UserBody> =>
  bodyOf(await send(app, 'POST /users', { ...somebody(), ...values }), 201)

let people = 0

/** A name and an e-mail that no other user of this process has. */
export function somebody(): { name: string; email: string } {
  const number = ++people
  return { name: `Person ${number}`, email: `person-${number}@example.com` }
}

export const logIn = async (app: Served, email: string, password: string): Promise<string> =>
  bodyOf<{ token: string }>(await send(app, 'POST /tokens', { email, password })).token

export type Member = UserBody & { readonly token: string }

/** Creates a user with a password, and returns its token. */
export async function createMember(app: Served): Promise<Member> {
  const password = 'right password'
  const user = await createUser(app, { password })
  return { ...user, token: await logIn(app, user.email, password) }
}

/** Items to order, with a different amount each time, starting at 11. */
export function someItems(): readonly { name: string; quantity: number; price: number }[] {
  const number = ++orders
  return [
    { name: `Gear ${number}`, quantity: 1, price: number },
    { name: 'Punched cards', quantity: 2, price: 5 },
  ]
}

let orders = 0

/** A new, unpaid order of this user. */
export const createOrder = async (app: Served, userId: number, items: object = someItems(), token?: string) =>
  bodyOf<OrderBody>(await send(app, `POST /users/${userId}/orders`, { items }, token), 201)

/** Pays an order, with a key or without one. */
export function payOrder(
  app: Served,
  id: number | string,
  key?: string,
  token?: string,
  own: Headers = {},
): Promise<RawResponse> {
  const headers = key === undefined ? own : { ...own, ...keyHeader(key) }
  return sendText(app, `POST /orders/${id}/payment`, undefined, token, headers)
}

/** The path of the payment, from the `Link` header of the answer to the payment of an order. */
export function paymentLinkOf({ headers }: RawResponse): string {
  const [, path] = /^<([^>]+)>; rel="payment"$/.exec(headers.get('link') ?? '') ?? []
  return path ?? assert.fail(`no link to a payment: ${headers.get('link')}`)
}

/** `POST /payments`. */
export const pay = (app: Served, key: string, body: unknown = { amount: 5 }, token?: string): Promise<RawResponse> =>
  sendText(app, 'POST /payments', JSON.stringify(body), token, keyHeader(key))

export const keyHeader = (key: string): { 'idempotency-key': string } => ({ 'idempotency-key': key })

let keys = 0

/** A key that is unique in this process. */
export const newKey = (): string => `key-${++keys}`

export function wasReplayed({ headers }: RawResponse): boolean {
  const header = headers.get('idempotent-replayed')
  assert.ok(header === undefined || header === 'true', header)
  return header === 'true'
}

/** Texts that cannot be stored: with U+0000, and with a surrogate that has no other half. */
export const unstorable = ['a\u0000b', 'a\ud800b', 'a\udc00', '\udc00\ud800']

/** Invalid ids: not a plain integer, or above the largest exact integer. */
export const impossibleIds: readonly string[] = [
  ...['abc', '0', '01', '-1', '+1', '1.5', '1.0', '1e0', '0x1', '1%20', '%201', '1%0A', '1%00', '%D9%A1', 'undefined'],
  ...['9007199254740992', '9007199254740993', '99999999999999999999', '9'.repeat(1000)],
]
