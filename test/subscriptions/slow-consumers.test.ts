import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { inForm } from '../support/form.ts'
import { type DuetProcess, serveDuet } from '../support/process.ts'
import { createMember } from '../support/rest.ts'
import { clientFrame, metricOf, opcodes, RawSocket, SocketClient, untilNoSocketIsLeft } from '../support/sockets.ts'
import { waitUntil } from '../support/wait.ts'

const create = 'mutation ($text: String!) { createPost(title: "T", content: $text) { id } }'

/** A subscriber that parses as little of an event as possible, so that one process can simulate a thousand. */
class Light implements Disposable {
  readonly socket: RawSocket
  readonly ids: number[] = []
  /** The code of the close frame. */
  closeCode: number | undefined

  static async subscribe(port: number, selection: string): Promise<Light> {
    const socket = await RawSocket.connect(port)
    const light = new Light(socket)
    socket.say({ type: 'subscribe', id: '1', payload: { query: `subscription { postAdded ${selection} }` } })
    return light
  }

  private constructor(socket: RawSocket) {
    this.socket = socket
    socket.stream.on('end', () => socket.stream.end())
    socket.onFrame = ({ opcode, payload }) => {
      if (opcode === opcodes.close) {
        this.closeCode = payload.readUInt16BE(0)
        socket.write(clientFrame(payload, { opcode })) // answers the close frame
      } else if (opcode === opcodes.ping) socket.write(clientFrame(payload, { opcode: opcodes.pong }))
      else if (opcode === opcodes.text) this.#note(payload.subarray(0, 100).toString('latin1'))
    }
  }

  #note(text: string): void {
    const [, id] = /^\{"id":"1","type":"next","payload":\{"data":\{"postAdded":\{"id":"(\d+)"/.exec(text) ?? []
    this.ids.push(Number(id ?? assert.fail(text)))
  }

  /** Whether no event is missing or duplicated between the first and the last. */
  get isWhole(): boolean {
    const [first = 0] = this.ids
    return this.ids.every((id, index) => id === first + index)
  }

  [Symbol.dispose](): void {
    this.socket[Symbol.dispose]()
  }
}

async function many(count: number, make: () => Promise<Light>): Promise<readonly Light[]> {
  const all: Light[] = []
  while (all.length < count)
    all.push(...(await Promise.all(Array.from({ length: Math.min(50, count - all.length) }, make))))
  return all
}

let duet: DuetProcess
let served: Awaited<ReturnType<DuetProcess['address']>>
before(async () => {
  duet = serveDuet({ RATE_LIMIT_MAX: '0', LOG_LEVEL: 'warn' })
  served = await duet.address()
})
after(() => duet[Symbol.asyncDispose]())

const slowOnes = inForm(10, 200)
const healthyOnes = inForm(50, 1_000)
const events = inForm(120, 2_000)
const bytes = inForm(60_000, 10_000)

test(`F12: subscribers that stop reading are closed, and ${healthyOnes} others miss no event`, {
  timeout: 600_000,
}, async t => {
  using writer = await SocketClient.connect(served, await createMember(served))
  // In the long form all of them select the whole event. In the short form most select little, so that they are fast.
  const small = inForm(healthyOnes - 5, 0)
  const healthy = [
    ...(await many(healthyOnes - small, () => Light.subscribe(served.port, '{ id content }'))),
    ...(await many(small, () => Light.subscribe(served.port, '{ id title }'))),
  ]
  const slow = await many(slowOnes, () => Light.subscribe(served.port, '{ id content }'))
  await waitUntil(async () => (await metricOf(served, 'duet_subscriptions')) === healthyOnes + slowOnes)
  for (const each of slow) each.socket.stream.pause()
  const memory = () => metricOf(served, 'process_resident_memory_bytes')
  const before = await memory()
  let most = before
  const begun = performance.now()
  const text = 'x'.repeat(bytes)
  for (let written = 0; written < events; written++) {
    await writer.read(create, { text })
    // A healthy subscriber is never behind by more than the limit.
    await waitUntil(() => healthy.every(({ ids }) => ids.length >= written - 30))
    if (written % 50 === 0) most = Math.max(most, await memory())
  }
  await waitUntil(() => healthy.every(({ ids }) => ids.length >= events))
  const took = performance.now() - begun
  for (const each of healthy)
    assert.deepEqual([each.ids.length, each.isWhole, each.closeCode], [events, true, undefined])
  // So far the slow subscribers have read nothing, and no other subscriber waited for them.
  assert.equal(await metricOf(served, 'duet_subscriptions'), healthyOnes)
  const closed = await metricOf(served, 'duet_sockets_closed_slow_total')
  // The long form takes so long that some are disconnected earlier, because they do not answer a ping.
  assert.ok(closed <= slowOnes && (closed === slowOnes || took > 40_000), `${closed}`)
  most = Math.max(most, await memory())
  for (const each of slow) each.socket.stream.resume()
  await waitUntil(() => slow.every(({ socket }) => socket.isEnded))
  for (const each of slow) {
    assert.ok(each.ids.length < events && each.isWhole)
    assert.ok(each.closeCode === 1013 || each.closeCode === undefined, `${each.closeCode}`)
  }
  const informed = slow.filter(({ closeCode }) => closeCode === 1013).length
  await waitUntil(async () => (await metricOf(served, 'duet_sockets')) === healthyOnes + 1)
  const grown = Math.round((most - before) / 1024 / 1024)
  t.diagnostic(
    `${events} events of ${bytes} bytes to ${healthyOnes} healthy subscribers in ${Math.round(took)} ms; ` +
      `${slowOnes} slow ones gone, ${closed} of them closed for slowness, ${informed} read the code; ` +
      `at most ${grown} MiB more memory`,
  )
  // 1 MiB may wait for each slow subscriber, plus the overhead of the allocator. Without a limit it would be
  // everything that was written.
  assert.ok(grown < 300 + 3 * slowOnes, `${grown} MiB`)
  for (const each of [...healthy, ...slow]) each[Symbol.dispose]()
  await writer.close()
  await untilNoSocketIsLeft(served)
})

const count = inForm(300, 10_000)
// 40 kB each. A process also grows while it warms up, which has more weight with few subscribers.
const mostBytes = inForm(100e6, 400e6)

test(`F11: ${count} idle subscribers stay open, one event reaches all of them, and they take at most ${mostBytes / 1e6} MB`, {
  timeout: 300_000,
}, async t => {
  using writer = await SocketClient.connect(served, await createMember(served))
  const before = await metricOf(served, 'process_resident_memory_bytes')
  const all = await many(count, () => Light.subscribe(served.port, '{ id content }'))
  await waitUntil(async () => (await metricOf(served, 'duet_subscriptions')) === count)
  const grown = (await metricOf(served, 'process_resident_memory_bytes')) - before
  await writer.read(create, { text: 'for all' })
  await waitUntil(() => all.every(({ ids }) => ids.length === 1))
  assert.equal(await metricOf(served, 'duet_sockets'), count + 1)
  assert.ok(all.every(({ closeCode, socket }) => closeCode === undefined && !socket.isEnded))
  t.diagnostic(`${count} subscribers take ${Math.round(grown / 1e6)} MB more memory`)
  assert.ok(grown < mostBytes, `${grown} bytes`)
  for (const each of all) each[Symbol.dispose]()
  await writer.close()
  await untilNoSocketIsLeft(served)
})
