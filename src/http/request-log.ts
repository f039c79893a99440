import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { type Span, Waits } from '../lib/waits.ts'
import { traceOf } from './logging.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The key of the client that sent it, as limits count it. */
    client: string
    /** What the route declares, and its `url`. Fastify's `routeOptions` creates a large object each time it is read. */
    route: FastifyRequest['routeOptions']['config']
    /** Undefined if nobody would be told what it has waited for. */
    waits: Waits | undefined
    /** The GraphQL operation that it asks for, once that is known. */
    operation: { readonly name: string | undefined; readonly roots: readonly string[] } | undefined
  }
}

/** Returns undefined if the span is not sampled. */
export type BeginSpan = (name: string, traceparent: string | undefined) => Span | undefined

/** A `minor` operation has a line only if it was slow. */
export type Weight = 'minor' | 'usual' | 'failure'

export interface RequestLogSettings {
  /** `errors`: only answers from 500 on, and slow ones. Default: all. */
  readonly logRequests?: 'all' | 'errors'
  /** 0, the default: nothing is slow. */
  readonly slowOperationMs?: number
  /** Default: nothing is traced. */
  readonly beginSpan?: BeginSpan | undefined
}

/**
 * A line for each answer and each operation of a socket, and its span, if it is traced. Slow ones are warnings that tell
 * what was waited for.
 */
export class RequestLog {
  readonly #logger: Logger
  readonly #slowMs: number
  readonly #isAll: boolean
  readonly #beginSpan: BeginSpan | undefined

  constructor(logger: Logger, { logRequests = 'all', slowOperationMs = 0, beginSpan }: RequestLogSettings = {}) {
    this.#logger = logger
    this.#slowMs = slowOperationMs || Number.POSITIVE_INFINITY
    this.#isAll = logRequests === 'all'
    this.#beginSpan = beginSpan
  }

  /** Begins an operation. Its name has two parts, because most are not traced. Returns undefined if nobody is told. */
  begin(kind: string, name: string | undefined, traceparent: string | undefined): Waits | undefined {
    const span = this.#beginSpan?.(`${kind} ${name ?? '(none)'}`, traceparent)
    return span !== undefined || this.#slowMs < Number.POSITIVE_INFINITY ? new Waits(span) : undefined
  }

  /** Tells the end of an operation. Returns whether it was slow. */
  tell(message: string, ms: number, waits: Waits | undefined, weight: Weight, line: () => object): boolean {
    waits?.span?.end(line(), weight === 'failure')
    const isWanted = weight === 'failure' || (weight === 'usual' && this.#isAll)
    const isSlow = ms >= this.#slowMs
    if (isSlow) this.#logger.warn({ ...line(), waited: waits?.told() }, message)
    else if (isWanted && this.#logger.isLevelEnabled('info')) this.#logger.info(line(), message)
    return isSlow
  }

  /** Without a status, the client disconnected before the answer was sent. */
  answered(reply: FastifyReply, status?: number): void {
    const { request, elapsedTime } = reply
    const message = status === undefined ? 'the client disconnected before the answer was sent' : 'answered'
    this.tell(message, elapsedTime, request.waits, Number(status) >= 500 ? 'failure' : 'usual', () => {
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

/**
 * A client may put anything into a path by mistake, so only a plain path is logged. For others the route is logged, and
 * also for paths that have or may have a secret.
 */
function pathOf(request: FastifyRequest): string {
  const [path = ''] = request.url.split(/[?#;]/, 1)
  const isPlain = path.length <= 200 && /^\/[\w./-]*$/.test(path) && !secretPath.test(path)
  return isPlain ? path : (request.route.url ?? '(unknown)')
}

const secretPath = /resets?\/|(?<![\w-])[\w-]{43}(?![\w-])/i
