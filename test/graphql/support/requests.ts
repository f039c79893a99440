import { createHash } from 'node:crypto'
import { get, postText } from '../../support/graphql.ts'
import { SocketClient } from '../../support/sockets.ts'

/** The members of a request, as clients send them. */
export type Members = Readonly<Record<string, unknown>>

/** The answer to a client. Over a socket there is no status. */
export interface Answered {
  readonly status: number | undefined
  readonly data?: unknown
  readonly code?: string
  readonly message?: string
}

export type Send = (app: { readonly url: string }, members: Members) => Promise<Answered>

/** The same request over every transport. */
export const transports: Readonly<Record<string, Send>> = {
  POST: async (app, members) => {
    const { status, body } = await postText(app, JSON.stringify(members))
    return { status, ...JSON.parse(body, undefined), ...errorIn(JSON.parse(body).errors) }
  },
  GET: async (app, members) => {
    const parameters = Object.entries(members).map(([name, value]) => [
      name,
      typeof value === 'string' ? value : JSON.stringify(value),
    ])
    const { status, body } = await get(app, Object.fromEntries(parameters))
    return { status, ...JSON.parse(body), ...errorIn(JSON.parse(body).errors) }
  },
  'a socket': async (app, members) => {
    using client = await SocketClient.connect(app)
    client.send({ type: 'subscribe', id: '1', payload: members })
    await client.until(() => client.messages.some(({ type }) => type === 'next' || type === 'error'))
    const { type, payload } = client.messages.find(({ id }) => id === '1') ?? {}
    return type === 'next' ? { status: undefined, ...Object(payload) } : { status: undefined, ...errorIn(payload) }
  },
}

function errorIn(errors: unknown): object {
  if (!Array.isArray(errors)) return {}
  const [{ message, extensions }] = errors
  return { errors: undefined, code: extensions.code, message }
}

export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/** `extensions` with a hash, in the format of Apollo. */
export function persisted(sha256Hash: unknown, version: unknown = 1): { readonly extensions: Members } {
  return { extensions: { persistedQuery: { version, sha256Hash } } }
}
