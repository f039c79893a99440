import { signal } from '@preact/signals'
import { isDuetError, type LiveState } from '../../../client/src/index.ts'
import { api, duet } from '../client.ts'
import { requests } from './requests.ts'

/** Whether events arrive. */
export const connection = signal<LiveState>(api.live.state)

/** Whether the browser is online. */
export const online = signal(navigator.onLine)

/** Whether the service was asked without an answer, after events had stopped. Any later answer ends it. */
export const away = signal(false)

/** Until when the service refuses requests, because there were too many. In milliseconds since 1970. */
export const pausedUntil = signal(0)

api.live.onState(state => {
  connection.value = state
  if (state.state === 'live') away.value = false
  if (state.state === 'waiting' && pausedUntil.peek() <= Date.now()) findOutWhy()
})

/** A browser does not tell a page why a socket was refused. An answer to a request does, by its status. */
async function findOutWhy(): Promise<void> {
  try {
    await duet.request('GET', '/graphql?query={__typename}')
  } catch (error) {
    if (isDuetError(error, 'offline') && connection.peek().state !== 'live') away.value = true
  }
}

requests.subscribe(([newest]) => {
  if (newest?.status === undefined) return
  away.value = false
  if (newest.status === 429) pause((newest.retryAfter ?? 1) * 1000)
  // Not after its own question: a gateway that lets no socket through would be asked without an end.
  else if (!newest.background) api.live.retryNow()
})

function pause(milliseconds: number): void {
  pausedUntil.value = Date.now() + milliseconds
  setTimeout(() => api.live.retryNow(), milliseconds)
}

addEventListener('offline', () => {
  online.value = false
})
addEventListener('online', () => {
  online.value = true
})
