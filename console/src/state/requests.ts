import { signal } from '@preact/signals'
import type { RequestEntry } from '../../../client/src/index.ts'

/** One request to the service, for the log. */
export interface LoggedRequest extends RequestEntry {
  readonly id: number
  /** Whether the console sent it by itself, to check the health of the service. */
  readonly background: boolean
}

/** The number of requests that are kept, of each kind. */
const kept = { foreground: 200, background: 50 }

/** Newest first. */
export const requests = signal<readonly LoggedRequest[]>([])

let count = 0

export function logRequest(entry: RequestEntry): void {
  const background = /\/(health\/\w+|metrics|graphql\?query=\{__typename\})$/.test(entry.path)
  const room = { ...kept }
  requests.value = [{ ...entry, id: ++count, background }, ...requests.peek()].filter(
    each => room[each.background ? 'background' : 'foreground']-- > 0,
  )
}

export function clearRequests(): void {
  requests.value = []
}

/** The same request as a curl command. The token is a shell variable, and passwords are omitted. */
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
