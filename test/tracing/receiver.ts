import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'

/** A span as it was received. Ids are hexadecimal, times in nanoseconds. */
export interface ReceivedSpan {
  readonly name: string
  readonly trace: string
  readonly id: string
  readonly parent: string
  readonly begun: bigint
  readonly ended: bigint
  readonly attributes: Readonly<Record<string, unknown>>
  readonly links: readonly { readonly trace: string; readonly id: string }[]
  readonly isFailure: boolean
  /** Of the service. */
  readonly service: unknown
  /** Which request of the exporter brought it. */
  readonly connection: number | undefined
}

/** Receives traces by OTLP over HTTP, as protobuf. */
export async function startReceiver(status = 200) {
  const spans: ReceivedSpan[] = []
  const bodies: string[] = []
  const server = createServer(async (request, response) => {
    assert.deepEqual([request.method, request.url], ['POST', '/v1/traces'])
    assert.equal(request.headers['content-type'], 'application/x-protobuf')
    const body = await buffer(request)
    bodies.push(body.toString('latin1'))
    spans.push(...spansIn(body, request.socket.remotePort))
    response.writeHead(status, { 'content-type': 'application/x-protobuf' }).end()
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    /** All bytes that were received. */
    bodies,
    [Symbol.dispose]: () => void server.close().closeAllConnections(),
  }
}

// The numbers of the fields are those of opentelemetry/proto/trace/v1/trace.proto.
function spansIn(body: Buffer, connection: number | undefined): ReceivedSpan[] {
  return all(body, 1).flatMap(ofResource => {
    const service = attributesIn(all(only(ofResource, 1), 1))['service.name']
    return all(ofResource, 2)
      .flatMap(ofScope => all(ofScope, 2))
      .map(span => ({
        name: only(span, 5).toString(),
        trace: only(span, 1).toString('hex'),
        id: only(span, 2).toString('hex'),
        parent: only(span, 4).toString('hex'),
        begun: only(span, 7).readBigUInt64LE(),
        ended: only(span, 8).readBigUInt64LE(),
        attributes: attributesIn(all(span, 9)),
        links: all(span, 13).map(link => ({ trace: only(link, 1).toString('hex'), id: only(link, 2).toString('hex') })),
        isFailure: only(only(span, 15), 3)[0] === 2,
        service,
        connection,
      }))
  })
}

function attributesIn(pairs: readonly Buffer[]): Record<string, unknown> {
  const valueIn = (value: Buffer) =>
    all(value, 1).length > 0 ? only(value, 1).toString() : varint(only(value, 3), 0)[0]
  return Object.fromEntries(pairs.map(pair => [only(pair, 1).toString(), valueIn(only(pair, 2))]))
}

/** The value of a field, or zeros if it is missing. */
function only(message: Buffer, field: number): Buffer {
  return all(message, field)[0] ?? Buffer.alloc(0)
}

/** The values of a field of a message, each as its bytes. */
function all(message: Buffer, field: number): Buffer[] {
  const values: Buffer[] = []
  for (let at = 0; at < message.length; ) {
    const [key, start] = varint(message, at)
    let end = start
    if (key % 8 === 0) end = varint(message, start)[1]
    else if (key % 8 === 1) end = start + 8
    else if (key % 8 === 5) end = start + 4
    const [length, bytes] = key % 8 === 2 ? varint(message, start) : [end - start, start]
    if (Math.floor(key / 8) === field) values.push(message.subarray(bytes, bytes + length))
    at = bytes + length
  }
  return values
}

function varint(bytes: Buffer, start: number): [value: number, end: number] {
  let value = 0
  let at = start
  for (let factor = 1; ; factor *= 128, at++) {
    const byte = bytes[at] ?? 0
    value += (byte % 128) * factor
    if (byte < 128) return [value, at + 1]
  }
}
