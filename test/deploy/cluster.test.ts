import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { test } from 'node:test'
import { postgres } from '../support/engines.ts'
import { onlyInFull } from '../support/form.ts'
import { ask } from '../support/http.ts'
import { waitUntil, within } from '../support/wait.ts'

test('npm run cluster serves one database from two instances, and Ctrl-C ends all of it', {
  skip: postgres.skip || onlyInFull,
}, async () => {
  const root = join(import.meta.dirname, '..', '..')
  // A separate process group, which gets the signal as a whole, as from a terminal.
  const child = spawn(process.execPath, [join(root, 'deploy', 'cluster.ts')], { cwd: root, detached: true })
  let printed = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', text => (printed += text))
  const ended = once(child, 'close')
  try {
    await waitUntil(() => printed.includes('Press Ctrl-C') || child.exitCode !== null)
    const instances = Array.from(printed.matchAll(/^Instance: (\S+)$/gm), ([, url]) => url ?? '')
    assert.equal(instances.length, 2, printed)
    const pay = async (url: string) => {
      const headers = { 'content-type': 'application/json', 'idempotency-key': 'once' }
      const { status, body } = await ask(`${url}/payments`, { method: 'POST', headers, body: '{"amount":1}' })
      return { status, body }
    }
    const [first, second] = [await pay(instances[0] ?? ''), await pay(instances[1] ?? '')]
    assert.deepEqual([first.status, second.status, second.body], [201, 200, first.body])
  } finally {
    process.kill(-(child.pid ?? assert.fail()), 'SIGINT')
  }
  const [code] = await within(ended, () => `the end of the cluster, which has printed ${printed}`)
  assert.equal(code, 0, printed)
  // The runner checks at the end of each run that no process and no file is left.
})
