import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, it, test } from 'node:test'
import { decodeJwt } from 'jose'
import { type Setting, settings } from '../../src/config.ts'
import { backupName } from '../../src/storage/backup.ts'
import { execute } from '../faults/execute.ts'
import { together } from '../runner/together.ts'
import { startTestApp, startTestAppOn } from '../support/app.ts'
import { engineKinds, sqlite, type TestDatabase } from '../support/engines.ts'
import { temporaryFolder } from '../support/folder.ts'
import { inForm, onlyInFull } from '../support/form.ts'
import { ask, postJson } from '../support/http.ts'
import { tokenKeys } from '../support/keys.ts'
import { tokenOf, tryLogin } from '../support/logins.ts'
import { serveConnections } from '../support/ports.ts'
import { DuetProcess, refusalOf, runDuet, serveDuet } from '../support/process.ts'
import { metricOf } from '../support/sockets.ts'
import { waitUntil } from '../support/wait.ts'

/** There is a database, and only its owner can read and write the files. */
function assertPrivate(folder: string): void {
  const files = readdirSync(folder)
  assert.ok(files.includes('duet.db'))
  for (const file of files) assert.equal(statSync(join(folder, file)).mode & 0o777, 0o600, file)
}

const secret = 'hunter2'

// Each of these tests runs its own processes.
describe('the command line', () => {
  const test = together(4)

  test('what is found to be wrong at the start stops it, with one line that names the variable and contains no secret', async () => {
    using folder = temporaryFolder()
    const [empty, text] = [join(folder.path, 'empty'), join(folder.path, 'text')]
    writeFileSync(empty, '')
    writeFileSync(text, 'This is not a database, but long enough to be taken for one.'.repeat(99))
    await using taken = await serveConnections()
    const DATABASE_URL = `postgres://user:${secret}@localhost:1/x`
    for (const [env, reason] of [
      [{ TOKEN_KEYS: `{"keys":[{"kty":"OKP","crv":"Ed25519","d":"${secret}"}]}` }, /^duet: TOKEN_KEYS: /],
      [{ PORT: String(taken.port) }, /^duet: PORT: another program already listens on this address$/m],
      [{ DATABASE_URL, TOKEN_KEYS: tokenKeys }, /^duet: DATABASE_URL: no database listens at this address$/m],
      [{ DATABASE_URL: DATABASE_URL.replace('localhost', 'a..b'), TOKEN_KEYS: tokenKeys }, /: the host is not known$/m],
      [{ DATABASE_URL: `sqlite:${empty}/duet.db` }, /^duet: DATABASE_URL: /],
      [{ DATABASE_URL: `sqlite:${text}` }, /^duet: DATABASE_URL: /],
      [{ HOST: 'not a host' }, /^duet: HOST: /],
      [{ PUBLIC_DIR: 'package.json' }, /^duet: PUBLIC_DIR: /],
    ] as const) {
      await using duet = serveDuet(env)
      const line = refusalOf(await duet.outcome())
      assert.match(line, reason)
      assert.ok(!line.includes(secret))
    }
  })

  test('the default database is created in the folder data of the current folder, and only its owner can read and write it', async () => {
    using folder = temporaryFolder()
    await using duet = serveDuet({ DATABASE_URL: '' }, { cwd: folder.path })
    assert.equal((await ask(`${(await duet.address()).url}/health/ready`)).status, 200)
    assert.deepEqual(readdirSync(folder.path), ['data'])
    assertPrivate(join(folder.path, 'data'))
    using other = temporaryFolder()
    const env = { DATABASE_URL: `sqlite:${join(other.path, 'duet.db')}` }
    assert.equal((await runDuet(['migrate'], { env })).code, 0)
    assertPrivate(other.path)
  })

  test('R-ERR-12: .env in the current folder is used, real environment variables override it, and SIGUSR2 turns maintenance off and on again', async () => {
    using folder = temporaryFolder()
    writeFileSync(join(folder.path, '.env'), 'MAINTENANCE=on\nBODY_LIMIT_BYTES="2048"\nLOG_LEVEL=silent\n# comment\n')
    await using duet = serveDuet({ LOG_LEVEL: 'warn' }, { cwd: folder.path })
    const { url } = await duet.address()
    const status = async (path: string) => (await ask(url + path)).status
    assert.equal(await status('/metrics'), 503)
    for (const expected of [200, 503]) {
      duet.child.kill('SIGUSR2')
      await waitUntil(async () => (await status('/metrics')) === expected)
    }
    assert.equal(await status('/health/ready'), 200)
    duet.child.kill('SIGTERM')
    const { code, stdout } = await duet.outcome()
    assert.equal(code, 0)
    assert.deepEqual(stdout.match(/(?<="level":40.*"maintenance":)\w+/g), ['false', 'true'])
    assert.doesNotMatch(stdout, /"answered"/)
  })

  test('a wrong value in .env, or a .env that cannot be read, stops the start', async () => {
    using folder = temporaryFolder()
    writeFileSync(join(folder.path, '.env'), 'PORT=http\n')
    const env = { DATABASE_URL: 'sqlite::memory:' }
    assert.match(refusalOf(await runDuet([], { env, cwd: folder.path })), /^duet: PORT: /)
    using other = temporaryFolder()
    mkdirSync(join(other.path, '.env'))
    assert.match(refusalOf(await runDuet([], { env, cwd: other.path })), /^duet: \.env: cannot be read$/m)
  })

  test('--help lists every command and every variable with its default, and exits with 0', async () => {
    for (const args of inForm([['serve', '-h']], [['--help'], ['help'], ['serve', '-h']])) {
      const { code, stdout, stderr } = await runDuet(args, { env: { PORT: 'not even a number' } })
      assert.deepEqual({ code, stderr }, { code: 0, stderr: '' })
      const commands = ['serve', 'migrate', 'seed', 'backup', 'keys generate']
      for (const command of [...commands, 'users create', 'users list', 'users set-role'])
        assert.match(stdout, new RegExp(`^ {2}${command} `, 'm'))
      for (const [name, { fallback, default: shownDefault }] of Object.entries<Setting>(settings)) {
        const [line] = stdout.split('\n').filter(each => each.trim().startsWith(`${name} `))
        assert.ok(line?.endsWith(`(default ${shownDefault ?? (fallback || 'none')})`), name)
      }
    }
  })

  test('the greeting shows the demo login only while it works, also under --watch, as in npm run dev', async () => {
    using folder = temporaryFolder()
    const env = {
      DATABASE_URL: `sqlite:${join(folder.path, 'duet.db')}`,
      DEMO_DATA: 'true',
      WATCH_REPORT_DEPENDENCIES: '1',
    }
    for (const isShown of [true, false]) {
      await using duet = serveDuet(env)
      const { url } = await duet.address()
      assert.equal(/demo/.test(duet.stdout), isShown)
      await ask(`${url}/users/1`, { method: 'DELETE' })
    }
  })

  test('a command that needs a database does not create one', async () => {
    using folder = temporaryFolder()
    const env = { DATABASE_URL: `sqlite:${join(folder.path, 'mistyped.db')}` }
    const copy = join(folder.path, 'copy.db')
    for (const command of ['users list', 'users set-role 1 admin', `backup ${copy}`]) {
      const line = refusalOf(await runDuet(command.split(' '), { env }))
      assert.match(line, /^duet: DATABASE_URL: there is no database at .*mistyped\.db\n$/)
    }
    assert.deepEqual(readdirSync(folder.path), [])
  })
})

for (const kind of engineKinds) {
  describe(`users on the command line, on ${kind.name}`, {
    skip: kind.skip || (kind.kind === 'postgres' && onlyInFull),
  }, () => {
    async function start() {
      const app = await startTestAppOn(kind)
      const env = { DATABASE_URL: app.database.url }
      const users = (args: readonly string[], input?: string) =>
        runDuet(['users', ...args], { env, ...(input !== undefined && { input }) })
      return Object.assign(app, { users })
    }

    test('create makes the first admin while a server runs, with a password that is printed once, or one from stdin, which is not printed', async () => {
      await using app = await start()
      const { code, stdout, stderr } = await app.users(['create', '--email', 'Root@example.com', '--role', 'admin'])
      assert.deepEqual([code, stderr], [0, ''])
      const [, id = '', generated = ''] =
        /^User (\d+) is created, with the role admin\.\nPassword: (\S{20})\n$/.exec(stdout) ?? assert.fail(stdout)
      const { sub, role } = decodeJwt(await tokenOf(app.url, 'root@example.com', generated))
      assert.deepEqual([sub, role], [id, 'admin'])
      const secret = 'from a file, with blanks'
      const args = ['create', '--email', 'ann@example.com', '--name', 'Ann', '--password-stdin']
      const created = await app.users(args, `${secret}\r\n`)
      assert.equal(created.code, 0)
      assert.match(created.stdout, /^User \d+ is created, with the role member\.\n$/)
      assert.equal(decodeJwt(await tokenOf(app.url, 'ann@example.com', secret)).role, 'member')
      assert.match(refusalOf(await app.users(args, `${secret}\n`)), /another user logs in with this e-mail/)
    })

    test('list shows every user with role, or those with one role, and no control or format character of a name or e-mail', async () => {
      await using app = await start()
      await postJson(`${app.url}/users`, JSON.stringify({ name: 'Bob', email: 'bob@example.com' }))
      await execute(app.database, "update users set name = 'Bob\u001b[2J\n\u009b1m'") // as older versions allowed
      await app.users(['create', '--email', 'root@example.com', '--role', 'admin'])
      const hidden = { name: 'a\u202enimda\u200b\u2028\u2029\u{e0041}', email: 'ro\u200bot\u2066@example.com' }
      await postJson(`${app.url}/users`, JSON.stringify(hidden))
      const bob = '1\tmember\tno\tbob@example.com\tBob\ufffd[2J\ufffd\ufffd1m\n'
      const root = '2\tadmin\tyes\troot@example.com\troot\n'
      const shown = '3\tmember\tno\tro\ufffdot\ufffd@example.com\ta\ufffdnimda\ufffd\ufffd\ufffd\ufffd\n'
      const head = 'id\trole\tlogin\temail\tname\n'
      assert.equal((await app.users(['list'])).stdout, head + bob + root + shown)
      // Others are found wherever they are among thousands.
      await execute(
        app.database,
        `insert into users (id, name, email, email_key, token_mark, role, created_at)
         with recursive n(i) as (select 4 union all select i + 1 from n where i < 2500)
         select i, 'U', 'u' || i || '@example.com', 'u' || i || '@example.com', 'mark ' || i,
                case when i in (4, 1000, 1001, 2500) then 'admin' else 'member' end, '2026-01-01T00:00:00.000Z' from n`,
      )
      const { stdout } = await app.users(['list', '--role', 'admin'])
      assert.deepEqual(stdout.match(/^\d+/gm), ['2', '4', '1000', '1001', '2500'])
    })
  })
}

test('a command that is unknown, or cannot be carried out, is refused with one line, and a password is never an argument', async () => {
  await using app = await startTestAppOn(sqlite)
  const env = { DATABASE_URL: app.database.url }
  const ann = ['users', 'create', '--email', 'ann@example.com']
  for (const [args, reason, input = ''] of [
    [['constructor'], /^duet: unknown command "constructor"/],
    [['seeded'], /^duet: unknown command "seeded"/],
    [['migrate', 'now'], /^duet: usage: migrate;/],
    [[...ann, '--password', 'correct horse'], /usage: users create --email <email> \[--name <name>\]/],
    [['users', 'create', '--email', 'ann'], /email must be an e-mail address/],
    [[...ann, '--role', 'root'], /the role must be member or admin/],
    [[...ann, '--password-stdin'], /password must be at least 8 characters/, 'short\n'],
    [['users', 'set-role', '4711', 'admin'], /there is no user with this id/],
    [['backup', '/no/folder/copy.db'], /folder\/copy\.db cannot be written: its folder does not exist\n$/],
    [['backup'], /^duet: BACKUP_DIR: set it, or name a file\n$/],
    [[...ann, '--name', 'Ann\u001b[2J'], /name must not contain control characters/],
    [['users', 'set-role', 'nobody@example.com', 'admin'], /no user can log in with this e-mail/],
  ] as const) {
    assert.match(refusalOf(await runDuet(args, { env, input })), reason)
  }
  assert.equal((await tryLogin(app.url)).status, 401)
})

const thousandUsers = `
  with recursive numbers (id) as (values (1) union all select id + 1 from numbers where id < 1000)
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
    env = { DATABASE_URL: database.url }
    using source = new DatabaseSync(database.location)
    source.exec(`${thousandUsers}; pragma user_version = 7`)
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
    const text = 'select count(*) as users, user_version as claim from users, pragma_user_version'
    assert.deepEqual({ ...copied.prepare(text).get() }, { users: 1000, claim: 0 })
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
    // One that fails removes nothing, and neither does one to another file.
    const fewer = { ...settings, BACKUP_KEEP: '1' }
    await runDuet(['backup', copy], { env: fewer })
    await runDuet(['backup'], { env: { ...fewer, DATABASE_URL: `sqlite:${folder.path}/letter.txt` } })
    assert.ok(readdirSync(folder.path).includes('duet-2026-01-31T03-00-00Z.db'))
  })

  it('shows its age as a metric, by the name of the newest one', async () => {
    await using app = await startTestApp({ BACKUP_DIR: folder.path, THREADS: '2' })
    assert.match((await ask(`${app.url}/metrics`)).body, /^duet_backup_age_seconds \+Inf$/m)
    for (const name of ['duet-2026-01-31T03-00-00Z.db', backupName('postgres', Date.now() - 900_000)])
      writeFileSync(join(folder.path, name), '')
    const age = await metricOf(app, 'duet_backup_age_seconds')
    assert.ok(age >= 900 && age < 1_100, String(age))
  })

  for (const signal of inForm(['SIGTERM'] as const, ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)) {
    it(`that is ended by ${signal} removes its draft`, async () => {
      using holder = new DatabaseSync(database.location)
      holder.exec('pragma locking_mode = exclusive; begin immediate; delete from users where id = 1')
      await using duet = new DuetProcess(['backup', copy], { env })
      await waitUntil(() => readdirSync(folder.path).some(name => name.endsWith('.part')))
      duet.child.kill(signal)
      await duet.outcome()
      assert.equal(duet.child.signalCode, signal)
      assert.deepEqual(readdirSync(folder.path), [])
    })
  }
})
