import type { Clock } from './clock.ts'
import { DuetError } from './errors.ts'
import { notify } from './notify.ts'
import { refusal, requestIdIn, retryAfterIn } from './refusals.ts'

export interface CallOptions {
  /** The body, which is sent as JSON. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal | undefined
  /**
   * What a successful answer must contain. A different answer does not come from the service, but from a proxy or
   * gateway.
   */
  readonly expect?: 'json' | 'nothing'
  /** For the log: 1 for the first attempt, more for retries. */
  readonly attempt?: number
}

export interface Answer<Body = unknown> {
  readonly status: number
  readonly headers: Headers
  /** Parsed, if it is JSON; else the text. */
  readonly body: Body
}

/** One request, for a log. */
export interface RequestEntry {
  readonly method: string
  /** The path with the query, without the host; the secret of a password reset is replaced by `…`. */
  readonly path: string
  readonly url: string
  /** `undefined` if there was no answer. */
  readonly status: number | undefined
  /** Milliseconds since 1970. */
  readonly startedAt: number
  readonly durationMs: number
  /** The remaining rate limit, if the path has one. */
  readonly rateLimit: { readonly remaining: number; readonly resetSeconds: number } | undefined
  /** Seconds to wait before the next attempt, if the service said so. */
  readonly retryAfter: number | undefined
  readonly requestId: string | undefined
  /** The sent headers, without the token. */
  readonly headers: Readonly<Record<string, string>>
  /** Whether a token was sent. */
  readonly authorized: boolean
  /** The sent body, with passwords replaced by `…`. */
  readonly body: string | undefined
  /** Whether this is the answer to an earlier request with the same key. */
  readonly replayed: boolean
  /** 1 for the first attempt, more for retries. */
  readonly attempt: number
}

export interface HttpOptions {
  readonly url: string
  readonly fetch: typeof globalThis.fetch
  readonly clock: Clock
  readonly timeoutMs: number
  readonly onRequest: ((entry: RequestEntry) => void) | undefined
}

export type Send = <Body>(
  method: string,
  path: string | URL,
  options: CallOptions & { readonly token?: string | undefined },
) => Promise<Answer<Body>>

/**
 * Sends requests to the service, and reports each of them. A path is relative to the service. A URL must be on the same
 * host.
 */
export function sender({ url: base, fetch, clock, timeoutMs, onRequest }: HttpOptions): Send {
  const { origin } = new URL(base)
  return async (method, path, { body, headers: own = {}, signal, token, expect, attempt = 1 }) => {
    const url = typeof path === 'string' ? new URL(`${base}/${path.replace(/^\/+/, '')}`) : path
    // A link must not send the token to another host.
    if (url.origin !== origin) throw new DuetError('server', `The service links to another host: ${url.origin}`)
    signal?.throwIfAborted()
    const sent = new Headers(own)
    if (body !== undefined && !sent.has('content-type')) sent.set('content-type', 'application/json')
    // A token of the caller is for a path that does not accept that of the session.
    if (token !== undefined && !sent.has('authorization')) sent.set('authorization', `Bearer ${token}`)
    const startedAt = clock.now()
    let received: Response | undefined
    const timeout = new AbortController()
    const stop = () => timeout.abort()
    const cancel = clock.after(timeoutMs, stop)
    signal?.addEventListener('abort', stop)
    try {
      const response = await fetch(url, {
        method,
        headers: sent,
        ...(body !== undefined && { body: JSON.stringify(body) }),
        signal: timeout.signal,
        credentials: 'omit',
        redirect: 'manual', // another address must not get a request that is meant for the service
      })
      const text = await response.text()
      received = response
      if (isRedirect(response)) throw strange(response)
      const answer = { status: response.status, headers: response.headers, body: parsed(response, text) }
      if (response.status >= 400) throw refusal(answer)
      if (!isExpected(answer, expect)) throw strange(response)
      return answer as Answer<never>
    } catch (error) {
      if (error instanceof DuetError) throw error
      signal?.throwIfAborted()
      const message = timeout.signal.aborted ? 'The service did not answer in time.' : 'The service cannot be reached.'
      throw new DuetError('offline', message, { cause: error })
    } finally {
      cancel()
      signal?.removeEventListener('abort', stop)
      notify([onRequest], {
        method,
        path: withoutSecret(url.pathname + url.search),
        url: withoutSecret(url.href),
        status: received?.status,
        startedAt,
        durationMs: clock.now() - startedAt,
        rateLimit: rateLimitIn(received),
        retryAfter: retryAfterIn(received),
        requestId: requestIdIn(received),
        headers: Object.fromEntries([...sent].filter(([name]) => name !== 'authorization')),
        authorized: sent.has('authorization'),
        body: body === undefined ? undefined : JSON.stringify(body, withoutPasswords),
        replayed: isReplay(received),
        attempt,
      })
    }
  }
}

function isExpected({ status, body }: Answer, expect: CallOptions['expect']): boolean {
  if (expect === 'nothing') return status === 204
  return expect === undefined || (typeof body === 'object' && body !== null)
}

function strange(response: Response): DuetError {
  const { status } = response
  return new DuetError('server', 'The answer is not from the service.', { status, requestId: requestIdIn(response) })
}

export function isReplay(answer: Pick<Answer, 'headers'> | undefined): boolean {
  return answer?.headers.get('idempotent-replayed') === 'true'
}

/** Browsers show only the type of a redirect, not its status. */
function isRedirect({ type, status }: Response): boolean {
  return type === 'opaqueredirect' || (status >= 300 && status < 400 && status !== 304)
}

function parsed(response: Response, text: string): unknown {
  if (!/\bjson\b/.test(response.headers.get('content-type') ?? '')) return text
  try {
    return JSON.parse(text)
  } catch (cause) {
    const { status } = response
    throw new DuetError('server', 'The answer is not JSON.', { status, requestId: requestIdIn(response), cause })
  }
}

function rateLimitIn(answer: Pick<Answer, 'headers'> | undefined): RequestEntry['rateLimit'] {
  const [, remaining, reset] = /;r=(\d+);t=(\d+)/.exec(answer?.headers.get('ratelimit') ?? '') ?? []
  return remaining === undefined ? undefined : { remaining: Number(remaining), resetSeconds: Number(reset) }
}

/** The secret of a password reset is worth as much as the password. */
function withoutSecret(address: string): string {
  return address.replace(/(\/password-resets\/)[^/?]+/, '$1…')
}

function withoutPasswords(name: string, value: unknown): unknown {
  return name === 'password' && value ? '…' : value
}
