import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { lastResort } from '../../src/http/lifecycle.ts'
import { isRefused, RawConnection } from '../support/http.ts'
import { collectLogs } from '../support/logs.ts'
import { serveDuet } from '../support/process.ts'
import { waitUntil, within } from '../support/wait.ts'

const preload = pathToFileURL(join(import.meta.dirname, 'planted-fault.ts'))

for (const [what, signal] of [
  ['an uncaught error', 'SIGWINCH'],
  ['an unhandled rejection', 'SIGCONT'],
] as const) {
  test(`${what} is logged once and stops listening at once, a running request is answered, and the process exits with 1`, async () => {
    const drainMs = 8_000 // the exit does not wait for it
    await using duet = serveDuet({ NODE_OPTIONS: `--import=${preload}`, DRAIN_MS: String(drainMs) })
    const { port } = await duet.address()
    using slow = await RawConnection.open(port)
    const body = '{"name":"Ada","email":"ada@example.com"}'
    const head = `POST /users HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n`
    slow.write(`${head}Expect: 100-continue\r\n\r\n`)
    assert.equal((await slow.response()).status, 100)
    const begun = performance.now()
    duet.child.kill(signal)
    await waitUntil(async () => (await isRefused(port)) || performance.now() - begun > drainMs)
    assert.ok(performance.now() - begun < drainMs, 'it continued to listen')
    slow.write(body)
    const answer = await within(slow.response(), 'the answer')
    assert.deepEqual([answer.status, answer.headers.get('connection')], [201, 'close'])
    const { code, stdout, stderr } = await duet.outcome()
    assert.deepEqual({ code, stderr }, { code: 1, stderr: '' })
    const lines = stdout.split('\n').filter(line => line.startsWith('{'))
    const fatal = lines.map(line => JSON.parse(line)).filter(({ level }) => level === 60)
    assert.deepEqual(
      fatal.map(({ msg, err }) => [msg, err.message]),
      [['Unhandled error: stopping', 'a planted fault']],
    )
    assert.match(fatal[0]?.err.stack, /planted-fault\.ts/)
  })
}

test('a second unhandled error ends the process at once, a stop that hangs after the timeout, and one that fails at once', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { logger, logs } = collectLogs()
  const exits: string[] = []
  const failing = (name: string, stop: () => Promise<void>) => {
    const fail = lastResort(logger, stop, code => exits.push(`${name}: ${code}`))
    fail(new Error('one'))
    return fail
  }
  let stops = 0
  const hang = () => new Promise<never>(() => stops++)
  const fail = failing('twice', hang)
  await settle()
  assert.deepEqual([stops, exits], [1, []])
  fail('two')
  assert.deepEqual([stops, exits], [1, ['twice: 1']])
  assert.deepEqual(
    logs.map(({ level, msg }) => [level, msg]),
    [
      [60, 'Unhandled error: stopping'],
      [60, 'Another unhandled error: exiting'],
    ],
  )
  failing('hangs', hang)
  failing('fails', () => Promise.reject(new Error('cannot stop')))
  await settle()
  t.mock.timers.tick(9_999)
  assert.deepEqual(exits, ['twice: 1', 'fails: 1'])
  t.mock.timers.tick(1)
  assert.ok(exits.includes('hangs: 1'))
})

const settle = () => new Promise(resolve => setImmediate(resolve))
