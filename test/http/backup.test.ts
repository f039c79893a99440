import assert from 'node:assert/strict'
import { readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { backupName } from '../../src/storage/backup.ts'
import { startTestApp } from '../support/app.ts'
import { sqlite, type TestDatabase } from '../support/engines.ts'
import { temporaryFolder } from '../support/folder.ts'
import { inForm } from '../support/form.ts'
import { ask } from '../support/http.ts'
import { DuetProcess, refusalOf, runDuet } from '../support/process.ts'
import { metricOf } from '../support/sockets.ts'
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

  it('to one name several times at once succeeds once, with a complete copy, and leaves nothing else, nor changes a foreign file', async () => {
    writeFileSync(`${copy}.part`, 'a letter in parts') // a name that it could have chosen for its draft
    const outcomes = await Promise.all(Array.from({ length: 3 }, backup))
    const [succeeded, failed] = [outcomes.filter(({ code }) => code === 0), outcomes.filter(({ code }) => code !== 0)]
    assert.equal(succeeded.length, 1, JSON.stringify(outcomes))
    for (const outcome of failed) assert.match(refusalOf(outcome), /copy\.db exists already; nothing was written\n$/)
    assert.deepEqual(readdirSync(folder.path).toSorted(), ['copy.db', 'copy.db.part'])
    assert.equal(readFileSync(`${copy}.part`, 'utf8'), 'a letter in parts')
    assert.equal(statSync(copy).mode & 0o777, 0o600)
    using copied = new DatabaseSync(copy)
    assert.deepEqual({ ...copied.prepare('select count(*) as users from users').get() }, { users: 1000 })
  })

  it('reports a file that is damaged, foreign, empty or no database, or whose copy fails its check, and leaves no file', async () => {
    const bytes = readFileSync(database.location)
    using source = new DatabaseSync(database.location)
    source.exec("pragma ignore_check_constraints = on; update users set role = 'king' where id = 7")
    source.exec('pragma wal_checkpoint(truncate)')
    using foreign = new DatabaseSync(join(folder.path, 'foreign.db'))
    foreign.exec('create table letters (text)')
    for (const [content, reason] of [
      [readFileSync(database.location), /: the copy is damaged: CHECK constraint failed in users\n$/],
      [Buffer.concat([bytes.subarray(0, 8192), Buffer.alloc(bytes.length - 8192, 1)]), /disk image is malformed/],
      [readFileSync(join(folder.path, 'foreign.db')), /there is no database of Duet at this path/],
      ['', /there is no database of Duet at this path/],
      ['a letter '.repeat(1000), /file is not a database/],
    ] as const) {
      const path = join(folder.path, 'source.db')
      writeFileSync(path, content)
      const outcome = await runDuet(['backup', copy], { env: { DATABASE_URL: `sqlite:${path}` } })
      assert.match(refusalOf(outcome), reason)
      assert.ok(!readdirSync(folder.path).some(name => /copy|part/.test(name)))
    }
  })

  it('is refused to a folder that does not exist, and without a place', async () => {
    const refused = async (args: readonly string[]) => refusalOf(await runDuet(['backup', ...args], { env }))
    const nowhere = join(folder.path, 'nowhere', 'copy.db')
    assert.match(await refused([nowhere]), /nowhere\/copy\.db cannot be written: its folder does not exist\n$/)
    assert.match(await refused([]), /^duet: BACKUP_DIR: set it, or name a file\n$/)
  })

  it('to BACKUP_DIR keeps the newest BACKUP_KEEP, foreign files and new drafts, and removes what is older', async () => {
    const old = ['duet-2026-01-30T03-00-00Z.db', 'duet-2026-01-31T03-00-00Z.db', 'duet-2026-01-29T03-00-00Z.dump']
    const kept = ['duet-backup-1.part', 'duet.db', 'letter.txt', 'old-duet-2026-01-01T03-00-00Z.db']
    for (const name of [...old, ...kept, 'duet-backup-0.part']) writeFileSync(join(folder.path, name), '')
    utimesSync(join(folder.path, 'duet-backup-0.part'), 1, 1)
    const hourAgo = Date.now() / 1000 - 3600
    utimesSync(join(folder.path, 'duet-backup-1.part'), hourAgo, hourAgo) // that backup may still run
    const settings = { ...env, BACKUP_DIR: folder.path, BACKUP_KEEP: '2' }
    const { code, stdout, stderr } = await runDuet(['backup'], { env: settings })
    assert.equal(code, 0, stderr)
    const [name = ''] = /duet-[\dT-]{19}Z\.db(?=\.\n$)/.exec(stdout) ?? []
    assert.equal(statSync(join(folder.path, name)).mode & 0o777, 0o600)
    assert.deepEqual(readdirSync(folder.path).toSorted(), [name, 'duet-2026-01-31T03-00-00Z.db', ...kept].toSorted())
    // One that fails removes nothing.
    await runDuet(['backup'], {
      env: { ...settings, BACKUP_KEEP: '1', DATABASE_URL: `sqlite:${folder.path}/letter.txt` },
    })
    assert.ok(readdirSync(folder.path).includes(name))
  })

  it('shows its age as a metric, by the name of the newest one', async () => {
    await using app = await startTestApp({ BACKUP_DIR: folder.path })
    assert.match((await ask(`${app.url}/metrics`)).body, /^duet_backup_age_seconds \+Inf$/m)
    for (const name of ['duet-2026-01-31T03-00-00Z.db', backupName('postgres', Date.now() - 60_000)])
      writeFileSync(join(folder.path, name), '')
    const age = await metricOf(app, 'duet_backup_age_seconds')
    assert.ok(age >= 60 && age < 200, String(age))
  })

  for (const signal of inForm(['SIGTERM'] as const, ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)) {
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
