import type { FastifyInstance, FastifyRequest, onRequestHookHandler } from 'fastify'
import { AppError } from '../core/errors.ts'
import { idOf } from '../core/input.ts'
import { clientKey, type TrustedProxies } from '../server/client-address.ts'
import type { Fields } from '../server/fields.ts'

/** The parts that the routes of every resource need. */
export interface RestServer {
  readonly server: FastifyInstance
  readonly authenticate: onRequestHookHandler
  /** The API is served at the root and below `/api`. The documentation describes the routes at the root. */
  readonly prefix: '' | '/api'
  readonly proxies: TrustedProxies
}

export const prefixes = ['', '/api'] as const

/** The id in the path, or `undefined` if no row can have such an id. */
export function idIn(request: FastifyRequest): number | undefined {
  const { id } = request.params as { id: string }
  if (id === '') throw new AppError('not-found', 'Not found') // `/users/` contains no id at all
  return idOf(id)
}

/** If a header was sent more than once, its values are joined. */
export function headerOf(request: FastifyRequest, name: string): string | undefined {
  return request.headers[name] as string | undefined
}

/** The client that sent the request. Queues and login limits use it, so that no client slows down the others. */
export function clientOf({ raw }: FastifyRequest, proxies: TrustedProxies): string {
  return clientKey(proxies.clientOf(raw))
}

export function queryOf(request: FastifyRequest): Fields {
  return request.query as Fields
}
