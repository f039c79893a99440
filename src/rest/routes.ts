import type { FastifyInstance, FastifyRequest, onRequestHookHandler } from 'fastify'
import { AppError } from '../core/errors.ts'
import { idOf } from '../core/input.ts'
import { clientKey, type TrustedProxies } from '../server/client-address.ts'
import type { Fields } from '../server/fields.ts'

/** What the routes of a resource are registered with. */
export interface RestServer {
  readonly server: FastifyInstance
  readonly authenticate: onRequestHookHandler
  /** The interface is served at the root and below `/api`; the root's routes are the documented ones. */
  readonly prefix: '' | '/api'
  readonly proxies: TrustedProxies
}

export const prefixes = ['', '/api'] as const

/** The id in a path, if it can name a row. */
export function idIn(request: FastifyRequest): number | undefined {
  const { id } = request.params as { id: string }
  if (id === '') throw new AppError('not-found', 'Not found') // `/users/` names no user at all
  return idOf(id)
}

/** Fastify joins a header that was sent more than once. */
export function headerOf(request: FastifyRequest, name: string): string | undefined {
  return request.headers[name] as string | undefined
}

/** Whose request it is, where it matters that no client is in the way of the others. */
export function clientOf({ raw }: FastifyRequest, proxies: TrustedProxies): string {
  return clientKey(proxies.clientOf(raw))
}

export function queryOf(request: FastifyRequest): Fields {
  return request.query as Fields
}
