import assert from 'node:assert/strict'
import { execFile, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, globSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { availableParallelism, userInfo } from 'node:os'
import { basename, join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { postgres } from '../support/engines.ts'
import { temporaryFolder } from '../support/folder.ts'
import { notInQuick, onlyInFull } from '../support/form.ts'
import { ask } from '../support/http.ts'
import { bodyOf, logIn, pay } from '../support/rest.ts'
import { waitUntil, within } from '../support/wait.ts'

const root = join(import.meta.dirname, '..', '..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')

/** A file of `deploy/` in a folder, with the paths and the user of this machine instead of those of an installation. */
function installed(file: string, folder: string): string {
  const text = read(`deploy/${file}`)
    .replaceAll('/opt/duet/deploy', folder)
    .replaceAll('/opt/duet', root)
    .replaceAll('/etc/duet', folder)
    .replaceAll('/var/lib/duet', join(folder, 'state'))
    .replaceAll('/var/cache/duet', join(folder, 'cache'))
    .replaceAll('= duet ]', `= ${userInfo().username} ]`)
  const path = join(folder, basename(file))
  writeFileSync(path, text)
  chmodSync(path, statSync(join(root, 'deploy', file)).mode)
  return path
}

const run = promisify(execFile)
const units = globSync('*.{service,timer}', { cwd: join(root, 'deploy') })
const [, version = 0] = /^systemd (\d+)/.exec(String(spawnSync('systemd-analyze', ['--version']).stdout)) ?? []
const withoutSystemd = Number(version) < 250 && 'systemd-analyze, 250 or newer, is not installed'

test('systemd accepts every unit, and calls what each may do little', {
  skip: withoutSystemd || notInQuick,
}, async () => {
  using folder = temporaryFolder()
  installed('duet', folder.path)
  const paths = units.map(unit => installed(unit, folder.path))
  const { stdout, stderr } = await run('systemd-analyze', ['verify', '--man=no', '--recursive-errors=yes', ...paths])
  assert.equal(stdout + stderr, '')
  const services = paths.filter(path => path.endsWith('.service'))
  await run('systemd-analyze', ['security', '--offline=true', '--threshold=20', ...services])
})

test('the service and a command from any folder read the same settings, whatever is in them', {
  skip: notInQuick,
}, async () => {
  using folder = temporaryFolder()
  const state = join(folder.path, 'state')
  mkdirSync(state)
  const duet = installed('duet', folder.path)
  const token = String.raw`two#$HOME\"x"`
  const settings = [
    ...['HOST=127.0.0.1', 'PORT=0', 'THREADS=1', 'NODE_OPTIONS=--title=odd'],
    ...[`DATABASE_URL="sqlite:odd # $HOME it's.db"`, `METRICS_TOKEN='${token}' # a comment`],
  ]
  writeFileSync(join(folder.path, 'duet.env'), settings.join('\n'))
  const { PATH } = process.env
  const elsewhere = { cwd: '/', env: { PATH } }

  const service = spawn(duet, ['serve'], { ...elsewhere, stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(service, 'exit')
  try {
    let log = ''
    service.stdout.setEncoding('utf8').on('data', text => (log += text))
    const address = () => /"Listening at (http:[^ ,"]+)/.exec(log)?.[1]
    await waitUntil(() => address() !== undefined || service.exitCode !== null)
    const metrics = await ask(`${address()}/metrics`, { headers: { authorization: `Bearer ${token}` } })
    assert.equal(metrics.status, 200, metrics.body)
    assert.match(readFileSync(`/proc/${service.pid}/cmdline`, 'utf8'), /^odd\0/)
    assert.equal(statSync(join(state, "odd # $HOME it's.db")).mode & 0o777, 0o600)
    await waitUntil(() => globSync('**', { cwd: join(folder.path, 'cache') }).length > 10)

    const { stdout } = await run(duet, ['users', 'create', '--email', 'ann@example.com'], elsewhere)
    const [, password = ''] = /^Password: (.*)$/m.exec(stdout) ?? []
    await logIn({ url: address() ?? '' }, 'ann@example.com', password)
  } finally {
    service.kill('SIGKILL')
    await ended
  }
})

const entrypoint = JSON.parse(/^ENTRYPOINT (.*)$/m.exec(read('deploy/Dockerfile'))?.[1] ?? '[]') as string[]

const lines: Readonly<Record<string, { readonly line: readonly string[]; readonly program: string }>> = {
  'npm start': { line: ['sh', '-c', JSON.parse(read('package.json')).scripts.start], program: 'bin/duet.mjs' },
  'the image': { line: [...entrypoint, 'serve'], program: '/app/bin/duet.mjs' },
}

for (const [name, { line, program }] of Object.entries(lines)) {
  test(`${name} gives malloc an arena for each thread that serves, and bounds its free memory and the new objects of V8`, () => {
    using folder = temporaryFolder()
    const told = '#!/bin/sh\necho "$MALLOC_ARENA_MAX $MALLOC_MMAP_THRESHOLD_ $MALLOC_TRIM_THRESHOLD_ $@"'
    writeFileSync(join(folder.path, 'node'), told, { mode: 0o755 })
    const started = (threads: string, arenas = '') => {
      const [command = '', ...args] = line
      const env = { PATH: `${folder.path}:${process.env.PATH}`, THREADS: threads, MALLOC_ARENA_MAX: arenas }
      return execFileSync(command, args, { env, encoding: 'utf8' }).trim()
    }
    const flags = '--max-semi-space-size=8'
    const script = read('deploy/duet')
    assert.ok(script.includes(`node ${flags} `), 'systemd starts it with the same flags')
    assert.match(script, /^export MALLOC_ARENA_MAX=[^#]* MALLOC_MMAP_\w+=.*:-4194304.* MALLOC_TRIM_\w+=.*:-4194304/m)
    const rest = `4194304 4194304 ${flags} ${program} serve`
    assert.equal(started('3'), `3 ${rest}`)
    assert.equal(started('3', '5'), `5 ${rest}`, 'an own number counts')
    assert.match(started(''), new RegExp(`^[1-9]\\d* ${rest}$`))
    assert.ok(Number.parseInt(started(''), 10) >= availableParallelism())
  })
}

test('npm run cluster serves one database from two instances, and Ctrl-C ends all of it', {
  skip: postgres.skip || onlyInFull,
}, async () => {
  // A separate process group, which gets the signal as a whole, as from a terminal.
  const child = spawn(process.execPath, [join(root, 'deploy', 'cluster.ts')], { cwd: root, detached: true })
  let printed = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', text => (printed += text))
  const ended = once(child, 'close')
  try {
    await waitUntil(() => printed.includes('Press Ctrl-C') || child.exitCode !== null)
    const instances = Array.from(printed.matchAll(/^Instance: (\S+)$/gm), ([, url]) => url ?? '')
    assert.equal(instances.length, 2, printed)
    const [first, second] = instances.map(url => ({ url }))
    assert.ok(first && second)
    const paid = bodyOf<object>(await pay(first, 'once'), 201)
    assert.deepEqual(bodyOf<object>(await pay(second, 'once')), paid)
  } finally {
    process.kill(-(child.pid ?? assert.fail()), 'SIGINT')
  }
  const [code] = await within(ended, () => `the end of the cluster, which has printed ${printed}`)
  assert.equal(code, 0, printed)
  // The runner checks at the end of each run that no process and no file is left.
})
