import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { describe } from 'node:test'
import { type Setting, settings } from '../../src/config.ts'
import { together } from '../runner/together.ts'
import { temporaryFolder } from '../support/folder.ts'
import { inForm } from '../support/form.ts'
import { ask } from '../support/http.ts'
import { tokenKeys } from '../support/keys.ts'
import { refusalOf, runDuet, serveDuet } from '../support/process.ts'

/** Starts a server that cannot start. Checks that it exits with 1 and prints one line on stderr, which is returned. */
async function refusedStart(env: Readonly<Record<string, string>>): Promise<string> {
  await using duet = serveDuet(env)
  return refusalOf(await duet.outcome())
}

/** There is a database, and only its owner can read and write the files. */
function assertPrivate(folder: string): void {
  const files = readdirSync(folder)
  assert.ok(files.includes('duet.db'))
  for (const file of files) assert.equal(statSync(join(folder, file)).mode & 0o777, 0o600, file)
}

const secret = 'hunter2'

/** Wrong values that are found only at the start. */
const wrong: Readonly<Record<string, string>> = {
  TOKEN_KEYS: `{"keys":[{"kty":"OKP","crv":"Ed25519","d":"${secret}"}]}`,
  ...inForm({}, { HOST: 'not a host', TRUSTED_DOCUMENTS: 'no-such-file.json', PUBLIC_DIR: 'package.json' }),
}

// Each of these tests runs its own processes.
describe('the command line', () => {
  const test = together(4)

  test('a wrong value stops the start with one line that names its variable and contains no secret', async () => {
    await Promise.all(
      Object.entries(wrong).map(async ([name, value]) => {
        const line = await refusedStart({ [name]: value })
        assert.match(line, new RegExp(`^duet: ${name}: [^\n]+\n$`))
        assert.ok(!line.includes(secret))
      }),
    )
  })

  test('a port that is taken stops the start', async () => {
    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const { port } = taken.address() as AddressInfo
    const line = await refusedStart({ PORT: String(port) })
    taken.close()
    assert.match(line, /^duet: PORT: another program already listens on this address$/m)
  })

  for (const host of inForm(['localhost'], ['127.0.0.1', 'localhost', 'no..host'])) {
    test(`an unreachable PostgreSQL at ${host} stops the start, and its password is not printed`, async () => {
      const line = await refusedStart({ DATABASE_URL: `postgres://user:${secret}@${host}:1/x`, TOKEN_KEYS: tokenKeys })
      assert.match(line, /^duet: DATABASE_URL: \S+/)
      assert.ok(!line.includes(secret))
    })
  }

  test('a database folder that cannot be written, or a file that is no database, stops the start', async () => {
    using folder = temporaryFolder()
    const file = join(folder.path, 'file')
    writeFileSync(file, '')
    assert.match(await refusedStart({ DATABASE_URL: `sqlite:${file}/duet.db` }), /^duet: DATABASE_URL: /)
    writeFileSync(file, 'This is not a database, but long enough to be taken for one.'.repeat(99))
    assert.match(await refusedStart({ DATABASE_URL: `sqlite:${file}` }), /^duet: DATABASE_URL: /)
  })

  test('the default database is created in the folder data of the current folder, and only its owner can read and write it', async () => {
    using folder = temporaryFolder()
    await using duet = serveDuet({ DATABASE_URL: '' }, { cwd: folder.path })
    assert.equal((await ask(`${(await duet.address()).url}/health/ready`)).status, 200)
    assert.deepEqual(readdirSync(folder.path), ['data'])
    assertPrivate(join(folder.path, 'data'))
    for (const command of inForm(['migrate'], ['migrate', 'seed'])) {
      using other = temporaryFolder()
      const env = { DATABASE_URL: `sqlite:${join(other.path, 'duet.db')}` }
      assert.equal((await runDuet([command], { env })).code, 0)
      assertPrivate(other.path)
    }
  })

  test('.env in the current folder is used, and real environment variables override it', async () => {
    using folder = temporaryFolder()
    writeFileSync(join(folder.path, '.env'), 'MAINTENANCE=on\nBODY_LIMIT_BYTES="2048"\nLOG_LEVEL=silent\n# comment\n')
    await using duet = serveDuet({ LOG_LEVEL: 'warn' }, { cwd: folder.path })
    const { url } = await duet.address()
    assert.equal((await ask(`${url}/metrics`)).status, 503)
    duet.child.kill('SIGUSR2')
    duet.child.kill('SIGTERM')
    const { stdout } = await duet.outcome()
    assert.match(stdout, /Maintenance was toggled/)
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

  test('an unknown command or argument exits with 1 and a message', async () => {
    assert.match(refusalOf(await runDuet(['constructor'])), /^duet: unknown command "constructor"/)
    assert.match(refusalOf(await runDuet(['migrate', 'now'])), /^duet: usage: migrate;/)
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
    const more = [
      ['users', 'create', '--email', 'ann@example.com'],
      ['users', 'list'],
    ]
    for (const args of [
      ['users', 'set-role', '1', 'admin'],
      ['backup', join(folder.path, 'copy.db')],
      ...inForm([], more),
    ]) {
      const line = refusalOf(await runDuet(args, { env }))
      assert.match(line, /^duet: DATABASE_URL: there is no database at .*mistyped\.db\n$/)
    }
    assert.deepEqual(readdirSync(folder.path), [])
  })
})
