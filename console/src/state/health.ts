import { signal } from '@preact/signals'
import { isDuetError } from '../../../client/src/index.ts'
import { duet } from '../client.ts'
import { settings } from '../settings.ts'
import { visits } from './session.ts'

/** The values of `/metrics` at one moment. */
interface Sample {
  readonly at: number
  readonly requests: number
  readonly inFlight: number
  readonly sockets: number
  readonly subscriptions: number
  readonly events: number
  readonly eventSeconds: number
  readonly loopDelay: number
}

/** What the charts draw, oldest first. */
export interface Point {
  readonly requestsPerSecond: number
  readonly inFlight: number
  readonly sockets: number
  readonly subscriptions: number
  readonly eventDelayMs: number
  readonly loopDelayMs: number
}

export const readiness = signal<'unknown' | 'ready' | 'not ready' | 'away'>('unknown')
export const points = signal<readonly Point[]>([])
/** The token for `/metrics`, if it needs one. It is kept only here. */
export const metricsToken = signal('')
export const metricsRefused = signal(false)

const pointsKept = 60
const everyMs = 2000

let previous: Sample | undefined

// The next user may not be an operator.
visits.subscribe(() => {
  metricsToken.value = ''
  metricsRefused.value = false
  points.value = []
  previous = undefined
})

/** Checks the service every two seconds. Returns a function that stops this. */
export function watchHealth(): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined
  let stopped = false
  const look = async () => {
    if (!document.hidden) await Promise.all([readReadiness(), readMetrics()])
    if (!stopped) timer = setTimeout(look, everyMs)
  }
  look()
  return () => {
    stopped = true
    clearTimeout(timer)
  }
}

async function readReadiness(): Promise<void> {
  try {
    await duet.request('GET', '/health/ready')
    readiness.value = 'ready'
  } catch (error) {
    readiness.value = isDuetError(error, 'offline') ? 'away' : 'not ready'
  }
}

async function readMetrics(): Promise<void> {
  if (settings.metrics === 'off' || (settings.metrics === 'token' && metricsToken.peek() === '')) return
  const headers = settings.metrics === 'token' ? { Authorization: `Bearer ${metricsToken.peek()}` } : {}
  try {
    const { body } = await duet.request<string>('GET', '/metrics', { headers })
    take(sampleOf(body, Date.now()))
  } catch (error) {
    if (!isDuetError(error, 'unauthenticated')) return
    metricsRefused.value = true
    metricsToken.value = ''
  }
}

function take(sample: Sample): void {
  const before = previous
  previous = sample
  // A counter that decreased belongs to another process, so the difference has no meaning.
  if (before === undefined || sample.requests < before.requests) return
  const seconds = (sample.at - before.at) / 1000
  const events = sample.events - before.events
  const point: Point = {
    requestsPerSecond: (sample.requests - before.requests) / seconds,
    inFlight: sample.inFlight,
    sockets: sample.sockets,
    subscriptions: sample.subscriptions,
    // Without events there is no new value, so the latest one stays.
    eventDelayMs:
      events > 0
        ? ((sample.eventSeconds - before.eventSeconds) / events) * 1000
        : (points.peek().at(-1)?.eventDelayMs ?? Number.NaN),
    loopDelayMs: sample.loopDelay * 1000,
  }
  points.value = [...points.peek(), point].slice(-pointsKept)
}

function sampleOf(text: string, at: number): Sample {
  const sums = new Map<string, number>()
  for (const [, name = '', value = ''] of text.matchAll(/^([a-z_0-9]+)(?:\{[^\n]*\})? (\S+)/gm)) {
    sums.set(name, (sums.get(name) ?? 0) + Number(value))
  }
  const sum = (name: string) => sums.get(name) ?? 0
  return {
    at,
    requests: sum('duet_http_request_seconds_count'),
    inFlight: sum('duet_http_requests_in_flight'),
    sockets: sum('duet_sockets'),
    subscriptions: sum('duet_subscriptions'),
    events: sum('duet_events_lag_seconds_count'),
    eventSeconds: sum('duet_events_lag_seconds_sum'),
    loopDelay: sum('nodejs_eventloop_lag_p99_seconds'),
  }
}
