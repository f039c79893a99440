import { signal } from '@preact/signals'
import type { LiveState } from '../../../client/src/index.ts'
import { api } from '../client.ts'

/** Whether events arrive. */
export const connection = signal<LiveState>(api.live.state)

api.live.onState(state => {
  connection.value = state
})

/** Whether the browser is online. */
export const online = signal(navigator.onLine)

addEventListener('offline', () => {
  online.value = false
})
addEventListener('online', () => {
  online.value = true
  api.live.retryNow()
})
