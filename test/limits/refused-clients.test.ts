import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RefusalTable, refusalMemory } from '../../src/limits/refused-clients.ts'
import { TestClock } from '../support/clock.ts'

/** The tables of two threads. */
function tables(clock: TestClock) {
  const memory = refusalMemory()
  return [new RefusalTable(memory, clock), new RefusalTable(memory, clock)] as const
}

test('a client that one thread refuses is refused by the other until the time is over, again and again', () => {
  const clock = new TestClock()
  const [one, other] = tables(clock)
  for (let times = 0; times < 3; times++) {
    assert.equal(other.has('a'), false)
    assert.equal(one.add('a', 10), true, 'it is new')
    assert.equal(other.add('a', 10), false, 'it is known')
    assert.deepEqual([one.has('a'), other.has('a'), other.has('b')], [true, true, false])
    clock.pass(9_999)
    assert.ok(other.has('a'))
    clock.pass(1)
    assert.equal(one.has('a'), false)
  }
})

test('a client is not refused for longer if the clock is set back, nor after 2038', () => {
  const clock = new TestClock()
  const [table] = tables(clock)
  table.add('a', 60)
  clock.pass(-1_000)
  assert.equal(table.has('a'), false)
  table.add('a', 60)
  assert.ok(table.has('a'))
  clock.pass(Date.parse('2038-01-19T03:14:00Z') - clock.now())
  assert.equal(table.has('a'), false)
  table.add('a', 60)
  clock.pass(59_000)
  assert.ok(table.has('a'))
  clock.pass(1_000)
  assert.equal(table.has('a'), false)
})

test('of many refused clients nearly all are remembered, and no other client is refused with them', () => {
  const [table] = tables(new TestClock())
  for (let client = 0; client < 1_000; client++) table.add(`refused ${client}`, 60)
  let [remembered, foreign] = [0, 0]
  for (let client = 0; client < 10_000; client++) {
    if (client < 1_000 && table.has(`refused ${client}`)) remembered++
    if (table.has(`other ${client}`)) foreign++
  }
  assert.ok(remembered > 900, `${remembered} are remembered`)
  assert.equal(foreign, 0)
})
