import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { sqlite, type TestDatabase } from '../support/engines.ts'
import { temporaryFolder } from '../support/folder.ts'
import { DuetProcess, type Outcome, runDuet } from '../support/process.ts'
import { waitUntil } from '../support/wait.ts'

const addUsers = (first: number, last: number) => `
  with recursive numbers (id) as (values (${first}) union all select id + 1 from numbers where id < ${last})
  insert into users (id, name, email, email_key, token_mark, created_at)
  select id, 'Ann', 'ann@example.com', 'ann@example.com', '', '2026-01-31T00:00:00.000Z' from numbers`

describe('duet backup', () => {
  let database: TestDatabase
  let folder: ReturnType<typeof temporaryFolder>
  let copy: string
  let env: { readonly DATABASE_URL: string }
  beforeEach(async () => {
    database = await sqlite.create()
    folder = temporaryFolder()
    copy = join(folder.path, 'copy.db')
    env = { DATABASE_URL: `sqlite:${database.location}` }
    using source = new DatabaseSync(database.location)
    source.exec(addUsers(1, 1000))
  })
  afterEach(async () => {
    folder[Symbol.dispose]()
    await database[Symbol.asyncDispose]()
  })
  const backup = () => runDuet(['backup', copy], { env })

  it('to one name several times at once succeeds once, with a complete copy, and leaves nothing else', async () => {
    const outcomes = await Promise.all(Array.from({ length: 4 }, backup))
    const [succeeded, failed] = [outcomes.filter(({ code }) => code === 0), outcomes.filter(({ code }) => code !== 0)]
    assert.equal(succeeded.length, 1, JSON.stringify(outcomes))
    for (const outcome of failed) assert.match(oneLine(outcome), /copy\.db exists already; nothing was written\n$/)
    assert.deepEqual(readdirSync(folder.path), ['copy.db'])
    using copied = new DatabaseSync(copy)
    assert.deepEqual({ ...copied.prepare('select count(*) as users from users').get() }, { users: 1000 })
  })

  it('leaves a foreign file alone whose name it could have chosen for its draft', async () => {
    writeFileSync(`${copy}.part`, 'a letter in parts')
    assert.equal((await backup()).code, 0)
    assert.equal(readFileSync(`${copy}.part`, 'utf8'), 'a letter in parts')
    assert.deepEqual(readdirSync(folder.path).toSorted(), ['copy.db', 'copy.db.part'])
  })

  it('reports a copy that fails its check, and leaves no file', async () => {
    using source = new DatabaseSync(database.location)
    source.exec("pragma ignore_check_constraints = on; update users set role = 'king' where id = 7")
    const line = oneLine(await backup())
    assert.equal(line, 'duet: DATABASE_URL: the copy is damaged: CHECK constraint failed in users\n')
    assert.deepEqual(readdirSync(folder.path), [])
  })

  it('reports a file that is damaged, foreign, empty or no database, and leaves no file', async () => {
    const bytes = readFileSync(database.location)
    const path = join(folder.path, 'source.db')
    using foreign = new DatabaseSync(join(folder.path, 'foreign.db'))
    foreign.exec('create table letters (text)')
    for (const [content, reason] of [
      [Buffer.concat([bytes.subarray(0, 8192), Buffer.alloc(bytes.length - 8192, 1)]), /disk image is malformed/],
      [readFileSync(join(folder.path, 'foreign.db')), /there is no database of Duet at this path/],
      ['', /there is no database of Duet at this path/],
      ['a letter '.repeat(1000), /file is not a database/],
    ] as const) {
      writeFileSync(path, content)
      const outcome = await runDuet(['backup', copy], { env: { DATABASE_URL: `sqlite:${path}` } })
      assert.match(oneLine(outcome), reason)
    }
    assert.deepEqual(drafts(), [])
  })

  it('is refused to a folder that does not exist, and of PostgreSQL with a hint at its own program', async () => {
    const nowhere = join(folder.path, 'nowhere', 'copy.db')
    const refused = async (target: string, own = env) => oneLine(await runDuet(['backup', target], { env: own }))
    assert.match(await refused(nowhere), /nowhere\/copy\.db cannot be written: its folder does not exist\n$/)
    assert.match(await refused(copy, { DATABASE_URL: 'postgres://x' }), /pg_dump/)
  })

  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    it(`that is ended by ${signal} removes its draft`, async () => {
      using holder = new DatabaseSync(database.location)
      holder.exec('pragma locking_mode = exclusive; begin immediate; delete from users where id = 1')
      await using duet = new DuetProcess(['backup', copy], { env })
      await waitUntil(() => drafts().length === 1)
      duet.child.kill(signal)
      await duet.outcome()
      assert.equal(duet.child.signalCode, signal)
      assert.deepEqual(readdirSync(folder.path), [])
    })
  }

  const drafts = () => readdirSync(folder.path).filter(name => name.endsWith('.part'))
})

function oneLine({ code, stdout, stderr }: Outcome): string {
  assert.deepEqual([code, stdout], [1, ''], stderr)
  assert.match(stderr, /^duet: [^\n]+\n$/)
  return stderr
}
