import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { Waits } from '../lib/waits.ts'
import { traceOf } from './logging.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The key of the client that sent it, as limits count it. */
    client: string
    /** Undefined if nobody would be told what it has waited for. */
    waits: Waits | undefined
    /** The GraphQL operation that it asks for, once that is known. */
    operation: { readonly name: string | undefined; readonly roots: readonly string[] } | undefined
  }
}

export interface RequestLogSettings {
  /** `errors`: only answers from 500 on, and slow ones. Default: all. */
  readonly logRequests?: 'all' | 'errors'
  /** 0, the default: nothing is slow. */
  readonly slowOperationMs?: number
}

/** A line for each answer and each operation of a socket. Slow ones are warnings that tell what was waited for. */
export class RequestLog {
  readonly #logger: Logger
  readonly #slowMs: number
  readonly isAll: boolean

  constructor(logger: Logger, { logRequests = 'all', slowOperationMs = 0 }: RequestLogSettings) {
    this.#logger = logger
    this.#slowMs = slowOperationMs || Number.POSITIVE_INFINITY
    this.isAll = logRequests === 'all'
  }

  newWaits(): Waits | undefined {
    return this.#slowMs < Number.POSITIVE_INFINITY ? new Waits() : undefined
  }

  /** A line that is not slow is written if it is wanted. */
  tell(message: string, ms: number, waits: Waits | undefined, isWanted: boolean, line: () => object): void {
    if (ms >= this.#slowMs) this.#logger.warn({ ...line(), waited: waits?.told() }, message)
    else if (isWanted && this.#logger.isLevelEnabled('info')) this.#logger.info(line(), message)
  }

  /** Without a status, the client disconnected before the answer was sent. */
  answered(reply: FastifyReply, status?: number): void {
    const { request, elapsedTime } = reply
    const message = status === undefined ? 'the client disconnected before the answer was sent' : 'answered'
    this.tell(message, elapsedTime, request.waits, this.isAll || Number(status) >= 500, () => {
      const { client, actor, method, operation } = request
      return {
        ...traceOf(request),
        client,
        user: actor?.kind === 'user' ? actor.id : undefined,
        method,
        path: pathOf(request),
        operation: operation?.name,
        fields: operation?.roots.join(),
        status,
        bytes: status === undefined ? undefined : Number(reply.getHeader('content-length') ?? 0),
        ms: Math.round(elapsedTime * 100) / 100,
      }
    })
  }
}

/** A client may put anything into a path by mistake, so only a plain path is logged. For others the route is logged. */
function pathOf(request: FastifyRequest): string {
  const [path = ''] = request.url.split(/[?#;]/, 1)
  return path.length <= 200 && /^\/[\w./-]*$/.test(path) ? path : (request.routeOptions.url ?? '(unknown)')
}
