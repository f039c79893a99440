import { hash, timingSafeEqual } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import {
  type Aggregator,
  AggregatorRegistry,
  Counter,
  collectDefaultMetrics,
  Gauge,
  type Metric,
  Registry,
} from 'prom-client'
import { AppError } from '../core/errors.ts'
import type { StoreObserver } from '../core/ports.ts'
import { oneAtATime } from '../lib/one-at-a-time.ts'
import { Histogram } from './histogram.ts'
import type { Lifecycle } from './lifecycle.ts'

const durations = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]

/** All metrics for Prometheus. Each app has its own registry, so that several apps can run in one process. */
export class Metrics {
  readonly registry = new Registry()
  readonly requests = new Histogram(
    this.registry,
    'duet_http_request_seconds',
    'Duration of HTTP requests, by route and status',
    durations,
  )
  /** Each call counts one. */
  readonly cutConnection = this.#counter(
    'duet_connections_cut_total',
    'Connections closed because their clients did not read the answer',
  )
  readonly refusedConnection = this.#counter(
    'duet_connections_refused_total',
    'Connections closed at once because their clients had too many open, or had sent more than twice what a limit allows',
  )

  readonly #delivered = this.#counter('duet_events_delivered_total', 'Events sent, once for each subscriber')
  readonly #eventLag = this.distribution(
    'duet_events_lag_seconds',
    'Time from the transaction that wrote an event until it is sent, by the clock of the database',
    [...durations, 5, 10],
  )
  readonly #socketOperations = new Counter({
    name: 'duet_socket_operations_total',
    help: 'GraphQL operations over WebSockets that have ended, by root field and outcome',
    labelNames: ['name', 'outcome'],
    registers: [this.registry],
  })
  /** Callbacks for WebSockets and their events. */
  readonly sockets = {
    closedForSlowness: this.#counter(
      'duet_sockets_closed_slow_total',
      'Sockets closed because their clients did not read',
    ),
    skipped: this.#counter(
      'duet_events_skipped_total',
      'Events not sent because their post or comment was deleted before',
    ),
    ended: (name: string, outcome: string) => this.#socketOperations.inc({ name, outcome }),
    replayed: this.#counter('duet_events_replayed_total', 'Earlier events sent to subscribers that resumed'),
    delivered: (subscribers: number, seconds: number) => {
      this.#delivered(subscribers)
      this.#eventLag(seconds)
    },
  }

  readonly mails = new Counter({
    name: 'duet_mails_total',
    help: 'Attempts to send a mail, by outcome; given up: not sent, and not tried any more',
    labelNames: ['outcome'],
    registers: [this.registry],
  })

  constructor() {
    for (const outcome of ['sent', 'failed', 'given up']) this.mails.inc({ outcome }, 0)
    this.#counter('duet_thread_restarts_total', 'Serving threads that ended and were replaced') // the main thread counts
    for (const metric of metricsOfNode()) this.registry.registerMetric(metric)
  }

  distribution(name: string, help: string, buckets = durations): (value: number) => void {
    return new Histogram(this.registry, name, help, buckets).unlabelled()
  }

  #counter(name: string, help: string): (count?: number) => void {
    const counter = new Counter({ name, help, registers: [this.registry] })
    return count => counter.inc(count)
  }

  /** Adds a gauge whose value is read at each scrape. `aggregator` combines the values of several threads. */
  gauge(name: string, help: string, value: () => number | Promise<number>, aggregator: Aggregator = 'sum'): void {
    new Gauge({
      name,
      help,
      aggregator,
      registers: [this.registry],
      async collect() {
        this.set(await value())
      },
    })
  }

  /** As plain data, for another thread. */
  async ofThread(): Promise<MetricsOfThread> {
    const all: MetricsOfThread = await this.registry.getMetricsAsJSON()
    return all.map(metric => {
      // What Node tells about the process is the same in all its threads.
      if (metric.name.startsWith('process_')) return { ...metric, aggregator: 'first' }
      // prom-client does that to the delays of event loops. One thread that is late would hide behind the others.
      return metric.aggregator === 'average' ? { ...metric, aggregator: 'max' } : metric
    })
  }

  buildInfo(labels: { readonly version: string; readonly node: string; readonly engine: string }): void {
    const labelNames = Object.keys(labels)
    const options = { name: 'duet_build_info', help: 'What runs here; always 1', aggregator: 'first' } as const
    new Gauge({ ...options, labelNames, registers: [this.registry] }).set(labels, 1)
  }

  storeObserver(log: (message: string, error: unknown) => void): StoreObserver {
    const troubles = this.#counter(
      'duet_store_troubles_total',
      'Errors of the store that no request reported, such as lost connections',
    )
    return {
      read: this.distribution('duet_store_read_seconds', 'Duration of a read from the store'),
      write: this.distribution('duet_store_write_seconds', 'Duration of a write, until it is durable'),
      commit: this.distribution(
        'duet_store_commit_verbs',
        'Writes that shared one durable commit',
        [1, 2, 4, 8, 16, 32, 64, 128, 256, 512],
      ),
      trouble: (message, error) => {
        troubles()
        log(message, error)
      },
    }
  }
}

/**
 * What Node tells about this thread and its process. It is collected once per thread, because its timers and observers
 * never end, not even with their app.
 */
function metricsOfNode(): readonly Metric[] {
  if (ofNode === undefined) {
    const registry = new Registry()
    collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 10 })
    ofNode = registry.getMetricsAsArray().flatMap(({ name }) => registry.getSingleMetric(name) ?? [])
  }
  return ofNode
}

let ofNode: readonly Metric[] | undefined

export type MetricsOfThread = readonly Pick<
  Awaited<ReturnType<Registry['getMetricsAsJSON']>>[number],
  'name' | 'aggregator' | 'values'
>[]

/** Measures every response, and serves the metrics at `/metrics`. */
export function serveMetrics(
  server: FastifyInstance,
  metrics: Metrics,
  lifecycle: Lifecycle,
  { metricsToken: token, metricsOpen }: { readonly metricsToken: string | undefined; readonly metricsOpen: boolean },
  /** Only set if there are several threads. */
  collect?: () => Promise<readonly MetricsOfThread[]>,
): void {
  metrics.gauge('duet_http_requests_in_flight', 'Requests being answered now', () => lifecycle.requestsInFlight)
  server.addHook('onResponse', (request, reply, next) => {
    const method = request.method === 'TRACE' ? '(other)' : request.method // the router gets every unusual one as TRACE
    const route = request.route.url ?? '(none)'
    const status = reply.statusCode
    metrics.requests.observe(reply.elapsedTime / 1000, `${method} ${status} ${route}`, isOther =>
      isOther ? { method: '(other)', route: '(other)', status } : { method, route, status },
    )
    next()
  })
  if (token === undefined && !metricsOpen) return
  // All that ask at the same time get the same text.
  const write = oneAtATime(async () => {
    const registry = collect === undefined ? metrics.registry : AggregatorRegistry.aggregate([...(await collect())])
    return registry.metrics()
  })
  server.get('/metrics', { config: { unlimited: true } }, async (request, reply) => {
    const [, sent = ''] = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '') ?? []
    const digest = (text: string) => hash('sha256', text, 'buffer')
    if (token !== undefined && !timingSafeEqual(digest(sent), digest(token))) {
      throw new AppError('unauthenticated', 'Metrics need their token')
    }
    return reply.type(metrics.registry.contentType).send(await write())
  })
}
