import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { ConfigError, readConfig, type Setting, settings } from '../../src/config.ts'
import { ended } from '../support/ended.ts'
import { temporaryFolder } from '../support/folder.ts'
import { ask } from '../support/http.ts'
import { tokenKeys } from '../support/keys.ts'
import { DuetProcess, type Outcome, runDuet, serveDuet } from '../support/process.ts'
import { waitUntil } from '../support/wait.ts'

/** Starts a server that cannot start. Checks that it exits with 1 and prints one line on stderr, which is returned. */
async function refusedStart(env: Readonly<Record<string, string>>): Promise<string> {
  await using duet = serveDuet(env)
  return oneLine(await ended(duet))
}

function oneLine({ code, stdout, stderr }: Outcome): string {
  assert.equal(code, 1, stderr)
  assert.equal(stdout, '')
  assert.match(stderr, /^duet: [^\n]+\n$/)
  return stderr
}

const secret = 'hunter2'
const wrong: Readonly<Record<string, string>> = {
  HOST: 'not a host',
  PORT: '65536',
  THREADS: '9',
  DATABASE_URL: `mysql://user:${secret}@127.0.0.1/x`,
  DATABASE_POOL_MAX: '0',
  DATABASE_POOLER: 'session',
  EVENT_RETENTION_SECONDS: '59',
  REDIS_URL: `http://:${secret}@127.0.0.1`,
  REDIS_TIMEOUT_MS: '9',
  BODY_LIMIT_BYTES: '1',
  CONNECTIONS_PER_CLIENT: 'many',
  MAINTENANCE: 'perhaps',
  CORS_ORIGINS: 'everyone',
  ALLOWED_HOSTS: '*',
  PUBLIC_DIR: 'package.json',
  METRICS_TOKEN: `${secret} ${secret}`,
  LOG_LEVEL: 'loud',
  DRAIN_MS: '-1',
  DEMO_DATA: 'perhaps',
  ACCESS_POLICY: 'closed',
  SIGN_UP: 'enforced',
  TOKEN_KEYS: `{"keys":[{"kty":"OKP","crv":"Ed25519","d":"${secret}"}]}`,
  DATABASE_TIMEOUT_MS: '199',
  SOCKET_INIT_TIMEOUT_MS: '99',
  SOCKETS_PER_CLIENT: '0',
  SOCKET_MESSAGES_PER_SECOND: '-1',
  SUBSCRIPTION_GROUPS_PER_CLIENT: '0',
  SUBSCRIPTION_GROUPS: '0',
  TOKEN_TTL_SECONDS: '0',
  SESSION_TTL_SECONDS: '0',
  IDEMPOTENCY_TTL_SECONDS: '31536001',
  LINK_PREFIX: 'shop/',
  RATE_LIMIT_MAX: '-1',
  RATE_LIMIT_WINDOW_MS: '0',
  RATE_LIMIT_PATHS: 'api',
  LOGIN_LIMIT_MAX: 'many',
  QUERY_MAX_DEPTH: '21',
  QUERY_MAX_COMPLEXITY: '0',
  INTROSPECTION: 'perhaps',
  EXPLORERS: 'perhaps',
  TRUSTED_DOCUMENTS: 'no-such-file.json',
  TRUST_PROXY: 'everyone',
  NODE_ENV: 'prod',
}

/** These values are checked only at the start. The first one represents all that are checked while they are read. */
const started = ['METRICS_TOKEN', 'HOST', 'TOKEN_KEYS', 'TRUSTED_DOCUMENTS', 'PUBLIC_DIR']

function messageOf(env: Readonly<Record<string, string>>): string {
  try {
    readConfig(env)
  } catch (error) {
    if (error instanceof ConfigError) return error.message
    throw error
  }
  return assert.fail(`${JSON.stringify(env)} is accepted`)
}

// Each of these tests runs its own processes.
describe('the command line', { concurrency: 4 }, () => {
  test('a wrong value of any variable stops the start with one line that names it and contains no secret', async () => {
    assert.deepEqual(Object.keys(wrong).sort(), Object.keys(settings).sort(), 'a variable has no wrong value here')
    await Promise.all(
      Object.entries(wrong).map(async ([name, value]) => {
        // A start takes half a second of CPU, so one value of each kind is enough to check the message.
        const line = started.includes(name)
          ? await refusedStart({ [name]: value })
          : `duet: ${messageOf({ [name]: value })}`
        assert.match(line, new RegExp(`^duet: ${name}: [^\n]+\n?$`))
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

  for (const host of ['127.0.0.1', 'localhost', 'no..host']) {
    test(`an unreachable PostgreSQL at ${host} stops the start, and its password is not printed`, async () => {
      const line = await refusedStart({ DATABASE_URL: `postgres://user:${secret}@${host}:1/x`, TOKEN_KEYS: tokenKeys })
      assert.match(line, /^duet: DATABASE_URL: \S+/)
      assert.ok(!line.includes(secret))
    })
  }

  test('a database folder that cannot be written stops the start', async () => {
    using folder = temporaryFolder()
    const file = join(folder.path, 'file')
    writeFileSync(file, '')
    assert.match(await refusedStart({ DATABASE_URL: `sqlite:${file}/duet.db` }), /^duet: DATABASE_URL: /)
    writeFileSync(
      join(folder.path, 'duet.db'),
      'This is not a database, but long enough to be taken for one.'.repeat(99),
    )
    assert.match(await refusedStart({ DATABASE_URL: `sqlite:${folder.path}/duet.db` }), /^duet: DATABASE_URL: /)
  })

  test('a second server on the same SQLite file is refused, and the first keeps running', async () => {
    using folder = temporaryFolder()
    const env = { DATABASE_URL: `sqlite:${folder.path}/data/duet.db` }
    await using first = serveDuet(env)
    const { url } = await first.address()
    assert.match(await refusedStart(env), /^duet: DATABASE_URL: Another server is using .+duet\.db$/m)
    assert.equal((await ask(`${url}/health/ready`)).status, 200)
  })

  test('the folder of the default database is created in the current folder, and a restart uses the same file', async t => {
    using folder = temporaryFolder()
    const started: number[] = []
    for (let times = 0; times < 2; times++) {
      const begun = performance.now()
      await using duet = serveDuet({ DATABASE_URL: '' }, { cwd: folder.path })
      const { url } = await duet.address()
      assert.equal((await ask(`${url}/health/ready`)).status, 200)
      started.push(Math.round(performance.now() - begun))
      duet.child.kill('SIGTERM')
      assert.equal((await ended(duet)).code, 0)
    }
    assert.deepEqual(readdirSync(folder.path), ['data'])
    assert.ok(readdirSync(join(folder.path, 'data')).includes('duet.db'))
    t.diagnostic(`start to first answer: ${started[0]} ms on a new database, ${started[1]} ms on an existing one`)
  })

  test('.env in the current folder is used, and real environment variables override it', async () => {
    using folder = temporaryFolder()
    writeFileSync(join(folder.path, '.env'), 'MAINTENANCE=on\nBODY_LIMIT_BYTES="2048"\nLOG_LEVEL=silent\n# comment\n')
    await using duet = serveDuet({ LOG_LEVEL: 'warn' }, { cwd: folder.path })
    const { url } = await duet.address()
    assert.equal((await ask(`${url}/metrics`)).status, 503)
    duet.child.kill('SIGUSR2')
    duet.child.kill('SIGTERM')
    const { stdout } = await ended(duet)
    assert.match(stdout, /Maintenance was toggled/)
    assert.doesNotMatch(stdout, /"answered"/)
  })

  test('a wrong value in .env, or a .env that cannot be read, stops the start', async () => {
    using folder = temporaryFolder()
    writeFileSync(join(folder.path, '.env'), 'PORT=http\n')
    const env = { DATABASE_URL: 'sqlite::memory:' }
    assert.match(oneLine(await runDuet([], { env, cwd: folder.path })), /^duet: PORT: /)
    using other = temporaryFolder()
    mkdirSync(join(other.path, '.env'))
    assert.match(oneLine(await runDuet([], { env, cwd: other.path })), /^duet: \.env: cannot be read$/m)
  })

  test('--help lists every command and every variable with its default, and exits with 0', async () => {
    for (const args of [['--help'], ['help'], ['serve', '-h']]) {
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
    assert.match(oneLine(await runDuet(['constructor'])), /^duet: unknown command "constructor"/)
    assert.match(oneLine(await runDuet(['migrate', 'now'])), /^duet: usage: migrate;/)
  })

  test('a server under --watch, as in npm run dev, starts as usual', async () => {
    await using duet = serveDuet({ WATCH_REPORT_DEPENDENCIES: '1' })
    assert.equal((await ask(`${(await duet.address()).url}/health/ready`)).status, 200)
  })

  test('the greeting shows the demo login only while it works', async () => {
    using folder = temporaryFolder()
    const env = { DATABASE_URL: `sqlite:${join(folder.path, 'duet.db')}` }
    {
      await using fresh = serveDuet({ ...env, DEMO_DATA: 'true' })
      const { url } = await fresh.address()
      assert.match(fresh.stdout, /demo-password/)
      await ask(`${url}/users/1`, { method: 'DELETE' })
    }
    await using later = serveDuet({ ...env, DEMO_DATA: 'true' })
    await later.address()
    assert.doesNotMatch(later.stdout, /demo/)
  })

  test('in production only log lines are printed', async () => {
    await using duet = serveDuet({ NODE_ENV: 'production' })
    await waitUntil(() => duet.stdout.includes('Listening at'))
    duet.child.kill('SIGTERM')
    const { stdout } = await ended(duet)
    for (const line of stdout.trimEnd().split('\n')) assert.equal(typeof JSON.parse(line), 'object', line)
  })

  test('only the owner can read and write the files that are created', async () => {
    for (const command of ['serve', 'migrate', 'seed']) {
      using folder = temporaryFolder()
      const env = { DATABASE_URL: `sqlite:${join(folder.path, 'duet.db')}`, PORT: '0' }
      await using duet = new DuetProcess([command], { env })
      if (command === 'serve') await duet.address()
      else assert.equal((await ended(duet)).code, 0)
      assert.equal((await runDuet(['backup', join(folder.path, 'copy.db')], { env })).code, 0)
      const files = readdirSync(folder.path)
      assert.ok(files.includes('duet.db') && files.includes('copy.db'))
      for (const file of files) assert.equal(statSync(join(folder.path, file)).mode & 0o777, 0o600, file)
    }
  })

  test('a command that needs a database does not create one', async () => {
    using folder = temporaryFolder()
    const env = { DATABASE_URL: `sqlite:${join(folder.path, 'mistyped.db')}` }
    for (const args of [
      ['users', 'set-role', '1', 'admin'],
      ['users', 'create', '--email', 'ann@example.com'],
      ['users', 'list'],
      ['backup', join(folder.path, 'copy.db')],
    ]) {
      assert.match(
        oneLine(await runDuet(args, { env })),
        /^duet: DATABASE_URL: there is no database at .*mistyped\.db\n$/,
      )
    }
    assert.deepEqual(readdirSync(folder.path), [])
  })

  test('backup copies a database that is in use, and does not overwrite a file', async () => {
    using folder = temporaryFolder()
    const env = { DATABASE_URL: `sqlite:${join(folder.path, 'duet.db')}` }
    const copy = join(folder.path, 'copy.db')
    await using duet = serveDuet({ ...env, DEMO_DATA: 'true' })
    const { url } = await duet.address()
    const users = (await ask(`${url}/users`)).body
    assert.equal((await runDuet(['backup', copy], { env })).code, 0)
    assert.match(oneLine(await runDuet(['backup', copy], { env })), /exists already/)
    assert.deepEqual(
      readdirSync(folder.path).filter(name => name.startsWith('copy')),
      ['copy.db'],
    )
    await using restored = serveDuet({ DATABASE_URL: `sqlite:${copy}` })
    assert.equal((await ask(`${(await restored.address()).url}/users`)).body, users)
    assert.match(oneLine(await runDuet(['backup', copy], { env: { DATABASE_URL: 'postgres://x' } })), /pg_dump/)
    const nowhere = join(folder.path, 'nowhere', 'copy.db')
    assert.match(
      oneLine(await runDuet(['backup', nowhere], { env })),
      /nowhere\/copy\.db cannot be written: its folder does not exist\n$/,
    )
  })
})
