import { createHash } from 'node:crypto'
import { type ErrorBody, get, postText } from '../../support/graphql.ts'
import type { Served } from '../../support/http.ts'
import { SocketClient } from '../../support/sockets.ts'

/** The members of a request, as clients send them. */
export type Members = Readonly<Record<string, unknown>>

/** The answer to a client. Over a socket there is no status. */
export interface Answered {
  readonly status: number | undefined
  readonly data: unknown
  readonly code: unknown
  readonly message: string | undefined
}

export type Send = (app: Served, members: Members) => Promise<Answered>

/** The same request over every transport. */
export const transports: Readonly<Record<'POST' | 'GET' | 'a socket', Send>> = {
  POST: async (app, members) => {
    const { status, body } = await postText(app, JSON.stringify(members))
    return answered(status, JSON.parse(body))
  },
  GET: async (app, members) => {
    const text = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value))
    const parameters = Object.entries(members).map(([name, value]) => [name, text(value)])
    const { status, body } = await get(app, Object.fromEntries(parameters))
    return answered(status, JSON.parse(body))
  },
  'a socket': async (app, members) => {
    using client = await SocketClient.connect(app)
    client.send({ type: 'subscribe', id: '1', payload: members })
    await client.until(() => client.messages.some(({ type }) => type === 'next' || type === 'error'))
    const { type, payload } = client.messages.find(({ id }) => id === '1') ?? {}
    return answered(undefined, type === 'next' ? Object(payload) : { errors: payload })
  },
}

function answered(status: number | undefined, body: { data?: unknown; errors?: readonly ErrorBody[] }): Answered {
  const { message, extensions } = body.errors?.[0] ?? {}
  return { status, data: body.data, code: extensions?.code, message }
}

export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/** `extensions` with a hash, in the format of Apollo. */
export function persisted(sha256Hash: unknown, version: unknown = 1): { readonly extensions: Members } {
  return { extensions: { persistedQuery: { version, sha256Hash } } }
}
