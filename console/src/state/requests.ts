import { signal } from '@preact/signals'
import type { RequestEntry } from '../../../client/src/index.ts'

/** One call of the service, as the log shows it. */
export interface LoggedRequest extends RequestEntry {
  readonly id: number
  /** Whether the console asked by itself, to know how the service is. */
  readonly background: boolean
}

/** So many of both kinds are kept. */
const kept = { foreground: 200, background: 50 }

/** Newest first. */
export const requests = signal<readonly LoggedRequest[]>([])

let count = 0

export function logRequest(entry: RequestEntry): void {
  const background = /\/(health\/\w+|metrics)$/.test(entry.path)
  const room = { ...kept }
  requests.value = [{ ...entry, id: ++count, background }, ...requests.peek()].filter(
    each => room[each.background ? 'background' : 'foreground']-- > 0,
  )
}

export function clearRequests(): void {
  requests.value = []
}

/** The same request for a shell. The token is a variable of the shell, and a password is left out. */
export function curl({ method, url, headers, authorized, body }: RequestEntry): string {
  const words = ['curl', '-sS']
  if (method !== (body === undefined ? 'GET' : 'POST')) words.push('-X', method)
  words.push(quoted(url))
  for (const [name, value] of Object.entries(headers)) words.push('-H', quoted(`${name}: ${value}`))
  if (authorized) words.push('-H', '"Authorization: Bearer $TOKEN"')
  if (body !== undefined) words.push('--data-raw', quoted(body))
  return words.join(' ')
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
