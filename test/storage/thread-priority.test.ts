import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { constants, getPriority } from 'node:os'
import { describe, it } from 'node:test'
import { Worker } from 'node:worker_threads'
import { sql } from '../../src/storage/sql.ts'
import type { FromHeavyReader, ToHeavyReader } from '../../src/storage/sqlite/heavy-reader-thread.ts'
import { lowerPriority } from '../../src/storage/sqlite/thread-priority.ts'
import { Stage } from '../graphql/support/stage.ts'
import { sqlite } from '../support/engines.ts'

const onLinux = { skip: process.platform === 'linux' ? false : 'only Linux has priorities of threads' }

describe('The thread of heavy reads', () => {
  it(
    'runs after the other threads of the process where cores are scarce, and changes none of them',
    onLinux,
    async () => {
      const before = getPriority()
      await using stage = await Stage.open(sqlite)
      await stage.engine.read({ ...sql`select 1`, heavy: true })
      const others = new Set<number>()
      const heavy = new Set<number>()
      for (const { name, nice } of threads()) (name === 'heavy reads' ? heavy : others).add(nice)
      assert.deepEqual([...heavy], [Math.min(19, before + 5)])
      assert.deepEqual([...others], [before])
    },
  )

  it('reads where the system refuses another priority', async () => {
    await using database = await sqlite.create()
    const refusing = `import os from 'node:os'
      import { syncBuiltinESMExports } from 'node:module'
      os.setPriority = () => { throw new Error('Refused') }
      syncBuiltinESMExports()`
    const module = new URL('../../src/storage/sqlite/heavy-reader-thread.ts', import.meta.url)
    const worker = new Worker(module, {
      execArgv: ['--import', `data:text/javascript,${encodeURIComponent(refusing)}`],
    })
    const asked: ToHeavyReader[] = [
      { path: database.location, busyMs: 1000, readers: 1 },
      { text: 'select 7', values: [], now: 0 },
    ]
    for (const message of asked) worker.postMessage(message)
    const [answer] = (await once(worker, 'message')) as [FromHeavyReader]
    await worker.terminate()
    assert.deepEqual(typeof answer === 'object' && 'rows' in answer && answer.rows, [[7]])
  })
})

describe('A lower priority', () => {
  it('is not set on systems where it would be that of the whole process', () => {
    const set: string[] = []
    for (const platform of ['darwin', 'win32', 'freebsd', 'linux']) lowerPriority(platform, () => set.push(platform))
    assert.deepEqual(set, ['linux'])
  })

  it('is never lower than the system has', onLinux, async () => {
    const module = new URL('../../src/storage/sqlite/thread-priority.ts', import.meta.url)
    const code = `const { lowerPriority } = await import(${JSON.stringify(module)})
      for (let times = 0; times < 9; times++) lowerPriority()
      const { getPriority } = await import('node:os')
      const { parentPort } = await import('node:worker_threads')
      parentPort.postMessage(getPriority())`
    const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(code)}`))
    assert.deepEqual(await once(worker, 'message'), [constants.priority.PRIORITY_LOW])
    await worker.terminate()
  })
})

/** The names and priorities of all threads of this process. */
function threads(): { name: string; nice: number }[] {
  return readdirSync('/proc/self/task').flatMap(task => {
    const [, name = '', rest = ''] = /^\d+ \((.*)\) (.*)$/s.exec(statOf(task)) ?? []
    return rest === '' ? [] : [{ name, nice: Number(rest.split(' ')[16]) }]
  })
}

function statOf(task: string): string {
  try {
    return readFileSync(`/proc/self/task/${task}/stat`, 'utf8')
  } catch {
    return '' // the thread has ended meanwhile
  }
}
