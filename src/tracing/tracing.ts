import {
  type Attributes,
  type Context,
  ROOT_CONTEXT,
  type SpanContext,
  SpanKind,
  type Span as SpanOfApi,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { detectResources, resourceAttributesEnvDetector, resourceFromAttributes } from '@opentelemetry/resources'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  SamplingDecision,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import type { Awaited, Span, Wait } from '../lib/waits.ts'
import { within } from '../lib/within.ts'

export interface TracingSettings {
  readonly tracesEndpoint: string
  readonly serviceName: string | undefined
  /** As OTEL_TRACES_SAMPLER names it. */
  readonly tracesSampler: string
  readonly tracesRatio: number
}

/** Traces by OpenTelemetry, sent by OTLP. This module and its packages are loaded only if there is an endpoint. */
export class Tracing implements AsyncDisposable {
  readonly #provider: TracerProvider
  readonly #tracer: Tracer

  /** `warn` is called once when spans cannot be sent, until they can be sent again. */
  constructor({ tracesEndpoint, serviceName, ...sampling }: TracingSettings, warn: (message: string) => void) {
    const exporter = new OTLPTraceExporter({ url: tracesEndpoint })
    let isAway = false
    const send: OTLPTraceExporter['export'] = exporter.export.bind(exporter)
    exporter.export = (spans, done) =>
      send(spans, result => {
        if (result.code !== 0 && !isAway) warn('Traces could not be sent. Those that wait too long are dropped')
        isAway = result.code !== 0
        done(result)
      })
    this.#provider = new TracerProvider({
      resource: detectResources({ detectors: [resourceAttributesEnvDetector] }).merge(
        resourceFromAttributes({ 'service.name': serviceName }),
      ),
      sampler: withCauses(samplerOf(sampling)),
      spanProcessors: [new BatchSpanProcessor({ exporter, maxQueueSize: 8_192 })],
    })
    this.#tracer = this.#provider.getTracer('duet')
  }

  /** `traceparent`: that of the caller. `link`: that of what has caused it, which is set only if that was sampled. */
  begin(name: string, traceparent: string | undefined, link: string | undefined): Span | undefined {
    const parent = traceparent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, contextIn(traceparent))
    const links = link === undefined ? [] : [{ context: contextIn(link) }]
    const kind = link === undefined ? SpanKind.SERVER : SpanKind.CONSUMER
    const startTime = Date.now()
    const span = this.#tracer.startSpan(name, { kind, links, startTime }, parent)
    return span.isRecording() ? new TracedSpan(this.#tracer, span, startTime - performance.now()) : undefined
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await within(this.#provider.shutdown(), shutdownMs, 'The receiver of traces does not respond').catch(() => {})
  }
}

class TracedSpan implements Span {
  readonly traceparent: string
  readonly #tracer: Tracer
  readonly #span: SpanOfApi
  readonly #context: Context
  /** What `performance.now()` counts from, in milliseconds since 1970. The same for all parts, so that they fit together. */
  readonly #origin: number

  constructor(tracer: Tracer, span: SpanOfApi, origin: number) {
    const { traceId, spanId } = span.spanContext()
    this.traceparent = `00-${traceId}-${spanId}-01`
    this.#tracer = tracer
    this.#span = span
    this.#origin = origin
    this.#context = trace.setSpan(ROOT_CONTEXT, span)
  }

  add(kind: Wait, since: number, until: number, what: Awaited = []): void {
    if (until - since < leastMs && (kind === 'queue' || kind === 'client')) return
    const name = kind === 'statement' ? `statement ${wordsOf(what)}` : kind
    this.#tracer.startSpan(name, { startTime: this.#origin + since }, this.#context).end(this.#origin + until)
  }

  /** `about`: the fields of the line in the log. */
  end(about: object, isFailure: boolean): void {
    const known = Object.entries(about).flatMap(([field, value]) => {
      const name = attributes[field]
      return name === undefined || value === undefined ? [] : [[name, value]]
    })
    this.#span.setAttributes(Object.fromEntries(known) as Attributes)
    if (isFailure) this.#span.setStatus({ code: SpanStatusCode.ERROR })
    this.#span.end(this.#origin + performance.now())
  }
}

/** Only the first word of each statement: the rest has names that clients choose. */
function wordsOf(what: Awaited): string {
  const texts = typeof what === 'string' ? [what] : what.map(({ text }) => text)
  return texts.map(text => /\w+/.exec(text)?.[0]).join(' ')
}

/** Names of attributes, by the names of fields in the log. */
const attributes: Readonly<Record<string, string>> = {
  requestId: 'duet.request_id',
  client: 'client.address',
  user: 'user.id',
  method: 'http.request.method',
  status: 'http.response.status_code',
  bytes: 'http.response.body.size',
  operation: 'graphql.operation.name',
  fields: 'duet.graphql.fields',
  outcome: 'duet.outcome',
  subscribers: 'duet.subscribers',
}

/** Shorter waits of these kinds are no waits. */
const leastMs = 0.05
/** The process must exit within ten seconds. */
const shutdownMs = 1_000

function contextIn(traceparent: string): SpanContext {
  const [, traceId = '', spanId = '', flags = ''] = traceparent.split('-')
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true }
}

function samplerOf({
  tracesSampler: name,
  tracesRatio: ratio,
}: Pick<TracingSettings, 'tracesSampler' | 'tracesRatio'>) {
  const root = name.endsWith('always_on')
    ? new AlwaysOnSampler()
    : name.endsWith('always_off')
      ? new AlwaysOffSampler()
      : new TraceIdRatioBasedSampler(ratio)
  return name.startsWith('parentbased_') ? new ParentBasedSampler({ root }) : root
}

/** What was caused by something sampled is sampled, too. */
function withCauses(sampler: Sampler): Sampler {
  return {
    shouldSample: (context, traceId, name, kind, attributes, links) =>
      links.length > 0
        ? { decision: SamplingDecision.RECORD_AND_SAMPLED }
        : sampler.shouldSample(context, traceId, name, kind, attributes, links),
    toString: () => sampler.toString(),
  }
}
