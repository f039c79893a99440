import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Event, isAfter, type Snapshot } from '../../src/core/events.ts'

function eventOf(transaction: number): Event {
  return { position: { transaction, id: 1 }, at: 0, kind: 'post-added', postId: 1 }
}

describe('isAfter', () => {
  const moment: Snapshot = { from: 10, to: 15, running: new Set([10, 12, 14]) }

  it('a transaction that had ended at the snapshot is not after it', () => {
    for (const transaction of [1, 9, 11, 13])
      assert.equal(isAfter(eventOf(transaction), moment), false, `${transaction}`)
  })

  it('a transaction that was running at the snapshot is after it', () => {
    for (const transaction of moment.running)
      assert.equal(isAfter(eventOf(transaction), moment), true, `${transaction}`)
  })

  it('a transaction that had not begun at the snapshot is after it', () => {
    for (const transaction of [15, 16, 1_000_000]) assert.equal(isAfter(eventOf(transaction), moment), true)
  })

  it('without running transactions, a snapshot separates all lower transactions from the others', () => {
    const still: Snapshot = { from: 10, to: 10, running: new Set() }
    assert.deepEqual(
      [9, 10, 11].map(transaction => isAfter(eventOf(transaction), still)),
      [false, true, true],
    )
  })
})
