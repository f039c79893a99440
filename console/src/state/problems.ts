import { isDuetError } from '../../../client/src/index.ts'

/** An error in words for the user. */
export interface Problem {
  readonly kind: 'offline' | 'unauthenticated' | 'forbidden' | 'rate-limited' | 'other'
  readonly title: string
  readonly text: string
  /** Whether a retry may succeed. */
  readonly retry: boolean
  /** When the user can go on, in milliseconds since 1970. */
  readonly until?: number
  /** The input that the service refuses, as the service names it, and the rest of its sentence. */
  readonly field?: string
  readonly rest?: string
}

export function problemOf(error: unknown): Problem {
  if (!isDuetError(error)) {
    return { kind: 'other', title: 'The console has a defect', text: String(error), retry: false }
  }
  const { kind, message, retryAfter, requestId } = error
  switch (kind) {
    case 'offline':
      return {
        kind,
        title: 'The service could not be reached',
        text: 'Nothing you wrote is lost. Try again when you are online.',
        retry: true,
      }
    case 'unauthenticated':
      return { kind, title: 'You are not signed in', text: 'Sign in to do this.', retry: false }
    case 'forbidden':
      return {
        kind,
        title: 'You may not do this',
        text: 'It is for its owner and for admins. Nothing has changed.',
        retry: false,
      }
    case 'rateLimited':
      return {
        kind: 'rate-limited',
        title: 'Too many requests',
        text: '',
        retry: true,
        until: Date.now() + (retryAfter ?? 1) * 1000,
      }
    case 'server':
      return {
        kind: 'other',
        title: 'The service could not do this',
        text: `${sentence(message)} ${requestId === undefined ? '' : `Its log knows it as ${requestId}.`}`,
        retry: true,
      }
    default:
      return { kind: 'other', title: 'That did not work', text: sentence(message), retry: false, ...fieldIn(message) }
  }
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`
}

/** The service names the input first: `name must not be empty`, `Email is already in use`. */
function fieldIn(message: string): Pick<Problem, 'field' | 'rest'> {
  const [, first = '', field = '', rest = ''] = /^(\w)([\w.[\]]*) ((?:must|is|contains) .*)$/s.exec(message) ?? []
  return rest === '' ? {} : { field: first.toLowerCase() + field, rest: /[.!?]$/.test(rest) ? rest : `${rest}.` }
}
