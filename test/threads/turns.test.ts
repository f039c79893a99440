import assert from 'node:assert/strict'
import { it } from 'node:test'
import { holdPort } from '../../src/threads/held-port.ts'
import { TurnOffice } from '../../src/threads/turns.ts'
import { freePort } from '../support/ports.ts'

it('the turns of a thread that has ended, started or not, go to the other threads', async () => {
  const office = new TurnOffice({ atOnce: 1 })
  const [ended, other] = [office.enter(), office.enter()]
  await ended.begin('a client', undefined)
  void ended.begin('a client', undefined) // it is still waiting when its thread ends
  const next = other.begin('another client', undefined)
  ended.leave()
  const turn = await next
  const further = other.begin('a client', undefined)
  other.end(turn)
  await further
})

it('two servers with several threads cannot share a port, also while the first does not listen yet', async () => {
  const address = { host: '127.0.0.1', port: await freePort() }
  const held = await holdPort(address)
  await assert.rejects(holdPort(address), { code: 'EADDRINUSE', syscall: 'listen' })
  await held.disposeAsync()
  await (await holdPort(address)).disposeAsync()
})
