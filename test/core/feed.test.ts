import assert from 'node:assert/strict'
import { describe, it, mock } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { AppError, unavailable } from '../../src/core/errors.ts'
import type { Event, EventLog, Position } from '../../src/core/events.ts'
import { type Deliver, Feed } from '../../src/core/feed.ts'

/** A log in memory; `hidden` events are not visible yet. */
class MemoryLog implements EventLog {
  readonly events: Event[] = []
  readonly asked: Position[] = []
  hidden = 0
  portion = 3
  failure: unknown
  gate: Promise<void> | undefined

  add(count: number): void {
    for (let n = 0; n < count; n++) {
      const id = this.events.length + 1
      this.events.push({ position: { transaction: id, id }, at: 0, kind: 'post-added', postId: id })
    }
  }

  async end() {
    return { transaction: this.events.length + 1, id: 0 }
  }

  async now() {
    const next = this.events.length + 1
    return { from: next, to: next, running: new Set<number>() }
  }

  async after(position: Position) {
    this.asked.push(position)
    await this.gate
    if (this.failure !== undefined) throw this.failure
    if (position.transaction > this.events.length + 1) return { events: [], more: false, lost: true }
    const visible = this.events.slice(0, this.events.length - this.hidden)
    const beyond = visible.filter(({ position: { transaction } }) =>
      position.id === 0 ? transaction >= position.transaction : transaction > position.transaction,
    )
    const events = beyond.slice(0, this.portion)
    const heldSince = this.hidden > 0 ? 7_000 : undefined
    return { events, more: beyond.length > events.length || this.hidden > 0, heldSince }
  }

  async keeps() {
    return true
  }

  async purge() {
    return 0
  }
}

class Stage {
  readonly log = new MemoryLog()
  readonly delivered: number[] = []
  readonly troubles: unknown[] = []
  losses = 0
  /** Errors by event id. The delivery of the event throws the error once. */
  readonly failures = new Map<number, unknown>()
  #listeners: (() => void)[] = []

  notify(): void {
    for (const listener of this.#listeners) listener()
  }

  start(): Promise<Feed> {
    const deliver: Deliver = async function* (this: Stage, events: readonly Event[]) {
      for (const event of events) {
        const failure = this.failures.get(event.position.id)
        this.failures.delete(event.position.id)
        if (failure !== undefined) throw failure
        this.delivered.push(event.position.id)
        yield event
      }
    }.bind(this)
    const bus = { notify() {}, listen: (listener: () => void) => this.#listeners.push(listener) }
    const observer = { trouble: (_message: string, error: unknown) => this.troubles.push(error) }
    const onLoss = () => this.losses++
    return Feed.start({ log: this.log, bus, observer, onLoss }, deliver)
  }
}

/** Waits until all work that needs no timer is done. */
async function settle(): Promise<void> {
  for (let n = 0; n < 20; n++) await turn()
}

function upTo(last: number, first = 1): number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index)
}

describe('Feed', () => {
  it('starts at the end of the log', async () => {
    const stage = new Stage()
    stage.log.add(5)
    await using _feed = await stage.start()
    stage.log.add(2)
    stage.notify()
    await settle()
    assert.deepEqual(stage.delivered, [6, 7])
  })

  it('delivers all events, batch by batch, once and in order', async () => {
    const stage = new Stage()
    await using _feed = await stage.start()
    stage.log.add(10)
    stage.notify()
    await settle()
    stage.log.add(1)
    stage.notify()
    await settle()
    assert.deepEqual(stage.delivered, upTo(11))
  })

  it('begins again at the end of a log that has lost events, and reports the loss once', async () => {
    const stage = new Stage()
    await using _feed = await stage.start()
    stage.log.add(10)
    stage.notify()
    await settle()
    stage.log.events.length = 4
    stage.notify()
    await settle()
    stage.log.add(2)
    stage.notify()
    await settle()
    assert.deepEqual(stage.delivered, [...upTo(10), 5, 6])
    assert.equal(stage.losses, 1)
  })

  it('a notification during a round causes one more round, and rounds do not overlap', async () => {
    const stage = new Stage()
    await using _feed = await stage.start()
    const { promise, resolve } = Promise.withResolvers<void>()
    stage.log.gate = promise
    for (let n = 0; n < 5; n++) stage.notify()
    await settle()
    assert.equal(stage.log.asked.length, 1)
    stage.log.gate = undefined
    resolve()
    await settle()
    assert.equal(stage.log.asked.length, 2)
  })

  it('reads the log every second without a notification', async () => {
    mock.timers.enable({ apis: ['setTimeout'] })
    try {
      const stage = new Stage()
      await using _feed = await stage.start()
      stage.log.add(1)
      mock.timers.tick(999)
      await settle()
      assert.deepEqual(stage.delivered, [])
      for (let n = 1; n <= 3; n++) {
        mock.timers.tick(1000)
        await settle()
        assert.deepEqual(stage.delivered, upTo(n))
        stage.log.add(1)
      }
    } finally {
      mock.timers.reset()
    }
  })

  it('reads the log again soon if events are about to become visible', async () => {
    mock.timers.enable({ apis: ['setTimeout'] })
    try {
      const stage = new Stage()
      await using feed = await stage.start()
      assert.equal(feed.undeliveredSince, undefined)
      stage.log.add(2)
      stage.log.hidden = 2
      stage.notify()
      await settle()
      assert.deepEqual([stage.delivered, feed.undeliveredSince], [[], 7_000])
      stage.log.hidden = 0
      mock.timers.tick(5)
      await settle()
      assert.deepEqual([stage.delivered, feed.undeliveredSince], [[1, 2], undefined])
    } finally {
      mock.timers.reset()
    }
  })

  it('a failed delivery is retried, starting with the event that failed', async () => {
    mock.timers.enable({ apis: ['setTimeout'] })
    try {
      const stage = new Stage()
      await using _feed = await stage.start()
      stage.failures.set(2, unavailable(new Error('away')))
      stage.failures.set(5, new Error('a defect'))
      stage.log.add(6)
      stage.notify()
      await settle()
      assert.deepEqual(stage.delivered, [1])
      mock.timers.tick(250)
      await settle()
      assert.deepEqual(stage.delivered, upTo(4))
      mock.timers.tick(250)
      await settle()
      assert.deepEqual(stage.delivered, upTo(6))
      // Errors about an unavailable store are reported elsewhere.
      assert.deepEqual(
        stage.troubles.map(error => (error as Error).message),
        ['a defect'],
      )
    } finally {
      mock.timers.reset()
    }
  })

  it('an event that can never be delivered is skipped after ten tries, but not while the store is unavailable', async () => {
    mock.timers.enable({ apis: ['setTimeout'] })
    try {
      const stage = new Stage()
      await using _feed = await stage.start()
      stage.log.add(4)
      const failAt = (id: number, failure: unknown) => stage.failures.set(id, failure)
      failAt(2, new Error('a defect'))
      stage.notify()
      await settle()
      for (let tries = 1; tries < 10; tries++) {
        assert.deepEqual(stage.delivered, [1], `after ${tries} tries`)
        failAt(2, new Error('a defect'))
        mock.timers.tick(250)
        await settle()
      }
      assert.deepEqual([stage.delivered, stage.troubles.length], [[1, 3, 4], 10])
      stage.log.add(2)
      for (let tries = 0; tries < 30; tries++) {
        failAt(5, unavailable(new Error('away')))
        mock.timers.tick(1000)
        await settle()
        assert.deepEqual(stage.delivered, [1, 3, 4])
      }
      stage.failures.clear()
      mock.timers.tick(250)
      await settle()
      assert.deepEqual(stage.delivered, [1, 3, 4, 5, 6])
    } finally {
      mock.timers.reset()
    }
  })

  it('a log that cannot be read is read again later, and errors other than outages are reported', async () => {
    mock.timers.enable({ apis: ['setTimeout'] })
    try {
      const stage = new Stage()
      await using _feed = await stage.start()
      stage.log.add(1)
      for (const failure of [unavailable(new Error('away')), new AppError('fault', 'x'), new Error('y')]) {
        stage.log.failure = failure
        mock.timers.tick(1000)
        await settle()
        assert.deepEqual(stage.delivered, [])
      }
      assert.equal(stage.troubles.length, 2)
      stage.log.failure = undefined
      mock.timers.tick(250)
      await settle()
      assert.deepEqual(stage.delivered, [1])
    } finally {
      mock.timers.reset()
    }
  })

  it('disposing it waits for the running delivery, and nothing is delivered after that', async () => {
    const stage = new Stage()
    const feed = await stage.start()
    const { promise, resolve } = Promise.withResolvers<void>()
    stage.log.gate = promise
    stage.log.add(2)
    stage.notify()
    await settle()
    let disposed = false
    const disposal = feed[Symbol.asyncDispose]().then(() => {
      disposed = true
    })
    stage.notify()
    await settle()
    assert.equal(disposed, false)
    resolve()
    await disposal
    const { length } = stage.delivered
    assert.ok(length <= 1, 'it continued after it was disposed')
    stage.log.add(2)
    stage.notify()
    await settle()
    assert.equal(stage.delivered.length, length)
    assert.equal(stage.log.asked.length, 1)
  })
})
