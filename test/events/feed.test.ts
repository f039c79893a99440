import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it, mock } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { AppError, unavailable } from '../../src/core/errors.ts'
import type { Event, EventLog, NextEvents, Place } from '../../src/core/events.ts'
import { Feed } from '../../src/events/feed.ts'
import { MemoryEventBus } from '../../src/events/memory-event-bus.ts'
import { atEachTurn } from '../support/wait.ts'

/** A log in memory. Its instants are those of one life: when it has lost events, later ones have other instants. */
class MemoryLog implements EventLog {
  readonly events: Event[] = []
  readonly asked: { readonly position: number; readonly written: boolean }[] = []
  portion = 3
  life = 0
  waitingSince: number | undefined
  now = 1
  failure: unknown
  gate: Promise<void> | undefined

  add(count: number): void {
    for (let n = 0; n < count; n++) {
      const position = this.events.length + 1
      this.events.push({ position, at: this.#timeOf(position), kind: 'post-added', postId: position })
    }
  }

  lose(left: number): void {
    this.events.length = left
    this.life++
  }

  #timeOf(position: number): number {
    return position * 10 + this.life
  }

  async end(): Promise<Place> {
    if (this.failure !== undefined) throw this.failure
    return { position: this.events.length, at: this.events.at(-1)?.at ?? 0, readAt: this.now }
  }

  async after({ position, at }: Place, written: boolean): Promise<NextEvents> {
    this.asked.push({ position, written })
    await this.gate
    if (this.failure !== undefined) throw this.failure
    const { waitingSince, now } = this
    const lost = position > this.events.length || (this.events[position - 1]?.at ?? 0) !== at
    if (lost) return { events: [], more: false, isNews: written, now, waitingSince, lost }
    const events = this.events.slice(position, position + this.portion)
    return { events, more: events.length === this.portion, isNews: written, now, waitingSince, lost }
  }

  ofTopic = () => assert.fail()
  keeps = () => assert.fail()
  tellsEndOf = () => assert.fail()
  purge = () => assert.fail()
}

class RecordingBus extends MemoryEventBus {
  announced = 0

  override announce(): void {
    this.announced++
  }

  /** An announcement of another thread or instance. */
  receive(): void {
    this.tell(false)
  }
}

class Stage {
  readonly log = new MemoryLog()
  readonly bus = new RecordingBus()
  readonly woken: number[] = []
  readonly revoked: number[] = []
  readonly troubles: unknown[] = []
  losses = 0
  revocation: (userId: number) => Promise<void> = async () => {}

  async start(): Promise<Feed> {
    const { log, bus } = this
    const observer = { trouble: (_message: string, error: unknown) => this.troubles.push(error) }
    const feed = new Feed({ log, bus, observer })
    await feed.start({
      wake: ({ position }) => this.woken.push(position),
      revoke: async userId => {
        await this.revocation(userId)
        this.revoked.push(userId)
      },
      lose: () => this.losses++,
    })
    return feed
  }

  async write(count: number): Promise<void> {
    this.log.add(count)
    this.bus.notify()
    await settle()
  }
}

/** Lets this much time pass, in steps of the pause between two rounds, with all the work of each. */
async function pass(ms: number): Promise<void> {
  for (let passed = 0; passed <= ms; passed += 10) {
    for (let n = 0; n < 20; n++) await turn()
    if (passed < ms) mock.timers.tick(10)
  }
}

/** Waits until all work is done that does not wait for the next look into the log. */
const settle = (): Promise<void> => pass(50)

const upTo = (last: number, first = 1) => Array.from({ length: last - first + 1 }, (_, index) => first + index)

describe('The feed', () => {
  beforeEach(() => {
    mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
    // Late work of another test may clear a timer that was mocked before. Node would then remove one of these instead.
    const { setInterval: create, clearInterval: clear } = globalThis
    const own = new Set<unknown>()
    const createOwn = (run: () => void, ms: number) => {
      const timer = create(run, ms)
      own.add(timer)
      return timer
    }
    const clearOwn = (timer: NodeJS.Timeout) => own.has(timer) && clear(timer)
    Object.assign(globalThis, { setInterval: createOwn, clearInterval: clearOwn, clearTimeout: clearOwn })
  })
  afterEach(() => mock.timers.reset())

  it('starts at the end of the log, tells of all later events once and in order, and begins again at the end of a log that has lost events', async () => {
    const stage = new Stage()
    stage.log.add(5)
    await using feed = await stage.start()
    assert.equal(feed.position, 5)
    await stage.write(10) // in several portions
    assert.deepEqual([stage.woken, feed.position], [upTo(15, 6), 15])
    for (const loss of [1, 2]) {
      stage.log.lose(4)
      stage.bus.receive()
      await settle()
      assert.deepEqual([stage.losses, feed.position, feed.reaches(3), feed.reaches(4)], [loss, 4, false, true])
      assert.equal(feed.next({ kind: 'post-added' }, 0), undefined)
      stage.woken.length = 0
      await stage.write(2)
      assert.deepEqual(stage.woken, [5, 6])
      assert.equal(feed.next({ kind: 'post-added' }, 4)?.position, 5)
    }
    // The log goes on past the former position before the feed looks.
    stage.log.lose(4)
    await stage.write(9)
    assert.deepEqual([stage.losses, feed.position], [3, 13])
    // Events of the former log take no place in memory from those that follow.
    stage.log.portion = 500
    await stage.write(1_000)
    assert.deepEqual([feed.reaches(12), feed.reaches(13)], [false, true])
    assert.equal(feed.next({ kind: 'post-added' }, 13)?.position, 14)
    await stage.write(1)
    assert.deepEqual([feed.reaches(13), feed.reaches(14)], [false, true], 'it keeps the latest thousand')
  })

  it('leaves turns to others between events that take long to tell of', async () => {
    const stage = new Stage()
    stage.log.portion = 100
    await using _feed = await stage.start()
    stage.woken.push = (...positions) => {
      for (const end = performance.now() + 2; performance.now() < end; );
      return Array.prototype.push.apply(stage.woken, positions)
    }
    const counts = await atEachTurn(
      () => stage.woken.length,
      () => stage.write(30),
    )
    assert.ok(counts.length >= 6 && stage.woken.length === 30, `${counts}`)
  })

  it('notices a loss again and again until it knows the end of the log', async () => {
    const stage = new Stage()
    await using feed = await stage.start()
    await stage.write(10)
    stage.log.lose(4)
    const end = mock.method(stage.log, 'end', () => Promise.reject(unavailable(new Error('away'))))
    stage.bus.receive()
    await settle()
    assert.equal(stage.losses, 0)
    end.mock.restore()
    await pass(1_000)
    assert.deepEqual([stage.losses, feed.position], [1, 4])
  })

  it('looks once more after a notification during a round, and rounds do not overlap', async () => {
    const stage = new Stage()
    await using _feed = await stage.start()
    const { promise, resolve } = Promise.withResolvers<void>()
    stage.log.gate = promise
    stage.bus.receive()
    for (let n = 0; n < 5; n++) stage.bus.notify()
    await settle()
    assert.deepEqual(stage.log.asked, [{ position: 0, written: false }])
    stage.log.gate = undefined
    resolve()
    await settle()
    assert.deepEqual(stage.log.asked, [
      { position: 0, written: false },
      { position: 0, written: true },
    ])
  })

  it('announces only what others may not know yet, also if it has read it before it was told that it was written here', async () => {
    const stage = new Stage()
    await using _feed = await stage.start()
    await stage.write(1)
    await stage.write(0) // which it could not read
    for (const times of [1, 2]) {
      assert.equal(stage.bus.announced, times)
      stage.log.add(1)
      stage.bus.receive() // another thread announces something else
      await settle()
      assert.deepEqual([stage.woken.length, stage.bus.announced], [times + 1, times])
      await stage.write(0)
    }
    assert.equal(stage.bus.announced, 3)
  })

  it('reads the log every second without a notification', async () => {
    const stage = new Stage()
    await using _feed = await stage.start()
    stage.log.add(1)
    await pass(990)
    assert.deepEqual(stage.woken, [])
    await pass(10)
    for (let n = 1; n <= 3; n++) {
      assert.deepEqual(stage.woken, upTo(n))
      stage.log.add(1)
      await pass(1_000)
    }
  })

  it('reads a log again that could not be read, and reports errors other than outages', async () => {
    const stage = new Stage()
    await using feed = await stage.start()
    const begun = performance.now()
    stage.log.add(1)
    for (const failure of [unavailable(new Error('away')), new AppError('fault', 'x'), new Error('y')]) {
      stage.log.failure = failure
      await pass(1_000)
      assert.deepEqual(stage.woken, [])
    }
    assert.deepEqual([stage.troubles.length, feed.hasAnsweredSince(begun)], [2, false])
    stage.log.failure = undefined
    await pass(1_000)
    assert.deepEqual([stage.woken, feed.hasAnsweredSince(begun)], [[1], true])
  })

  it('does not take the late answer to an earlier read for an answer since then', async () => {
    const stage = new Stage()
    await using feed = await stage.start()
    const { promise, resolve } = Promise.withResolvers<void>()
    stage.log.gate = promise
    stage.bus.receive()
    await settle()
    const since = performance.now()
    stage.log.gate = undefined
    resolve()
    await settle()
    assert.equal(feed.hasAnsweredSince(since), false)
    stage.bus.receive()
    await settle()
    assert.equal(feed.hasAnsweredSince(since), true)
  })

  it('closes the sockets of a revoked user before it tells of a later event, and tries again if that fails', async () => {
    const stage = new Stage()
    await using _feed = await stage.start()
    const revocations = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    let tries = 0
    stage.revocation = async () => revocations[tries++]?.promise
    stage.log.add(1)
    stage.log.events.push({ position: 2, at: 20, kind: 'user-revoked', userId: 77 })
    await stage.write(1)
    assert.deepEqual([stage.woken, stage.revoked], [[1], []])
    revocations[0]?.reject(unavailable(new Error('away')))
    await settle()
    await pass(1_000)
    assert.deepEqual([stage.woken, stage.revoked, tries], [[1], [], 2])
    revocations[1]?.resolve()
    await settle()
    assert.deepEqual([stage.woken, stage.revoked], [[1, 2, 3], [77]])
  })

  it('tells since when an event waits: one without a position, or one whose turn has not come', async () => {
    const stage = new Stage()
    await using feed = await stage.start()
    assert.equal(feed.waitingSince, undefined)
    stage.log.waitingSince = 7_000
    await stage.write(0)
    assert.equal(feed.waitingSince, 7_000)
    stage.log.waitingSince = undefined
    const { promise, resolve } = Promise.withResolvers<void>()
    stage.revocation = () => promise
    stage.log.events.push({ position: 1, at: 10, kind: 'user-revoked', userId: 77 })
    await stage.write(1)
    const { waitingSince } = feed
    resolve()
    await settle()
    assert.deepEqual([waitingSince, feed.waitingSince], [10, undefined])
  })

  it('tells the time by the clock of the log, however long its answers take', async () => {
    const stage = new Stage()
    stage.log.now = 5_000_000
    await using feed = await stage.start()
    const begun = performance.now()
    const isAt = (time: number) => assert.ok(feed.now() >= time && feed.now() <= time + performance.now() - begun + 1)
    isAt(5_000_000)
    const { promise, resolve } = Promise.withResolvers<void>()
    stage.log.gate = promise
    await stage.write(1)
    while (performance.now() < begun + 20) await turn()
    resolve() // what the log has read may be 20 milliseconds old, or not
    await settle()
    isAt(5_000_000)
    stage.log.now = 1_000_000 // was set back
    await stage.write(1)
    isAt(1_000_000)
  })

  it('waits for the running round when it is disposed, and does nothing after that', async () => {
    const stage = new Stage()
    const feed = await stage.start()
    const { promise, resolve } = Promise.withResolvers<void>()
    stage.log.gate = promise
    await stage.write(9)
    let disposed = false
    const disposal = feed[Symbol.asyncDispose]().then(() => (disposed = true))
    stage.bus.notify()
    await settle()
    assert.equal(disposed, false)
    resolve()
    await disposal
    await stage.write(2)
    assert.deepEqual([stage.woken, stage.log.asked.length], [[1, 2, 3], 1])
  })
})
