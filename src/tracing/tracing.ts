import * as api from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { detectResources, resourceAttributesEnvDetector, resourceFromAttributes } from '@opentelemetry/resources'
import * as sdk from '@opentelemetry/sdk-trace'
import type { Span } from '../lib/waits.ts'
import { within } from '../lib/within.ts'

export interface TracingSettings {
  readonly tracesEndpoint: string
  readonly serviceName: string | undefined
  /** As OpenTelemetry names it. */
  readonly tracesSampler: string
  readonly tracesRatio: number
}

/** Traces by OpenTelemetry, sent by OTLP. This module and its packages are loaded only if there is an endpoint. */
export class Tracing implements AsyncDisposable {
  readonly #provider: sdk.TracerProvider
  readonly #tracer: api.Tracer

  /** `warn` is called once when spans cannot be sent, until they can be sent again. */
  constructor({ tracesEndpoint: url, serviceName, tracesSampler, tracesRatio }: TracingSettings, warn: () => void) {
    const exporter = new OTLPTraceExporter({ url })
    const send = exporter.export.bind(exporter)
    let isAway = false
    exporter.export = (spans, done) =>
      send(spans, result => {
        if (result.code !== 0 && !isAway) warn()
        isAway = result.code !== 0
        done(result)
      })
    const given = detectResources({ detectors: [resourceAttributesEnvDetector] })
    this.#provider = new sdk.TracerProvider({
      resource: given.merge(resourceFromAttributes({ 'service.name': serviceName })),
      sampler: samplerOf(tracesSampler, tracesRatio),
      spanProcessors: [new sdk.BatchSpanProcessor({ exporter, maxQueueSize: 8_192 })],
    })
    this.#tracer = this.#provider.getTracer('duet')
  }

  /** Returns undefined if it is not sampled. A delivery is a part of the trace of its write, with a link to it. */
  begin(name: string, traceparent: string | undefined): Span | undefined {
    const { ROOT_CONTEXT, SpanKind, trace } = api
    const context = traceparent === undefined ? undefined : contextIn(traceparent)
    const isDelivery = name.startsWith('deliver')
    const kind = isDelivery ? SpanKind.CONSUMER : SpanKind.SERVER
    const links = isDelivery && context ? [{ context }] : []
    const startTime = Date.now()
    const parent = context ? trace.setSpanContext(ROOT_CONTEXT, context) : ROOT_CONTEXT
    const span = this.#tracer.startSpan(name, { kind, links, startTime }, parent)
    return span.isRecording() ? tracedSpan(this.#tracer, span, startTime - performance.now()) : undefined
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await within(this.#provider.shutdown(), shutdownMs, 'The receiver of traces does not respond').catch(() => {})
  }
}

/** `origin`: what `performance.now()` counts from, in milliseconds since 1970. All parts have the same, so they fit together. */
function tracedSpan(tracer: api.Tracer, span: api.Span, origin: number): Span {
  const { traceId, spanId } = span.spanContext()
  const context = api.trace.setSpan(api.ROOT_CONTEXT, span)
  return {
    traceparent: `00-${traceId}-${spanId}-01`,
    add(kind, since, until, what = []) {
      if (until - since < leastMs && (kind === 'queue' || kind === 'client')) return
      // Only the first word of each statement: the rest has names that clients choose.
      const texts = typeof what === 'string' ? [what] : what.map(({ text }) => text)
      const name = kind === 'statement' ? [kind, ...texts.map(text => /\w+/.exec(text)?.[0])].join(' ') : kind
      tracer.startSpan(name, { startTime: origin + since }, context).end(origin + until)
    },
    /** `about`: the fields of the line in the log. */
    end(about, isFailure) {
      for (const [field, value] of Object.entries(about))
        if (value !== undefined) span.setAttribute(attributes[field] ?? `duet.${field}`, value)
      if (isFailure) span.setStatus({ code: api.SpanStatusCode.ERROR })
      span.end(origin + performance.now())
    },
  }
}

const attributes: Readonly<Record<string, string>> = {
  client: 'client.address',
  user: 'user.id',
  method: 'http.request.method',
  status: 'http.response.status_code',
  operation: 'graphql.operation.name',
}

/** Shorter waits of some kinds are none. */
const leastMs = 0.05
/** The process must exit within ten seconds. */
const shutdownMs = 1_000

function contextIn(traceparent: string): api.SpanContext {
  const [, traceId = '', spanId = '', flags = ''] = traceparent.split('-')
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true }
}

function samplerOf(name: string, ratio: number): sdk.Sampler {
  const part = name.endsWith('always_on') ? 1 : name.endsWith('always_off') ? 0 : ratio
  const root = new sdk.TraceIdRatioBasedSampler(part)
  return name.startsWith('parentbased_') ? new sdk.ParentBasedSampler({ root }) : root
}
