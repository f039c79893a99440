import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { it } from 'node:test'
import { startTestApp } from '../support/app.ts'
import { engineKinds, postgres } from '../support/engines.ts'
import { query, read } from '../support/graphql.ts'
import { ask, sendRaw } from '../support/http.ts'
import { tokenKeys } from '../support/keys.ts'
import { serverUser } from '../support/postgres.ts'
import { createMember, send, somebody } from '../support/rest.ts'
import { executeOn, sqliteTemplatePath } from '../support/templates.ts'
import { waitUntil } from '../support/wait.ts'

/** The reason why no small disk can be mounted here. */
function mountMissing(): string | false {
  const folder = mkdtempSync(join(tmpdir(), 'duet-disk-'))
  const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', folder])
  if (status === 0) execFileSync('umount', [folder])
  rmdirSync(folder)
  return status === 0 ? false : 'needs the right to mount a disk'
}

const skip = mountMissing()

/** A disk of 24 MiB that can be filled to the last byte. */
class SmallDisk implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'duet-disk-'))
  readonly #ballast = join(this.folder, 'ballast')

  constructor() {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=24m', 'tmpfs', this.folder])
    chmodSync(this.folder, 0o755)
  }

  fill(): void {
    const more = () => {
      for (;;) writeFileSync(this.#ballast, Buffer.alloc(4096), { flag: 'a' })
    }
    assert.throws(more, { code: 'ENOSPC' })
  }

  makeRoom(): void {
    rmSync(this.#ballast)
  }

  [Symbol.dispose](): void {
    execFileSync('umount', ['--lazy', this.folder])
    rmdirSync(this.folder)
  }
}

/** A database with the whole schema on this disk. Returns its address. */
const databaseOn = {
  sqlite: async (disk: SmallDisk) => {
    const path = join(disk.folder, 'duet.db')
    copyFileSync(sqliteTemplatePath(), path)
    return `sqlite:${path}`
  },
  /** Its tables only: PostgreSQL has files for its log in store, so a full disk first shows in the tables. */
  postgres: async (disk: SmallDisk, parts: AsyncDisposableStack) => {
    const folder = join(disk.folder, 'tables')
    mkdirSync(folder)
    const user = serverUser()
    if (user !== undefined) execFileSync('chown', [`${user.uid}:${user.gid}`, folder])
    const { location } = await postgres.create()
    const [server, name] = [new URL('/postgres', location).href, new URL(location).pathname.slice(1)]
    parts.defer(() => executeOn(server, `drop tablespace ${name}`))
    parts.defer(() => executeOn(server, `drop database ${name} with (force)`))
    await executeOn(server, `create tablespace ${name} location '${folder}'`)
    await executeOn(server, `alter database ${name} set tablespace ${name}`)
    return location
  },
}

const ready = 'GET /health/ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'

for (const { name, kind, skip: missing } of engineKinds) {
  it(`a full disk on ${name} makes the service not ready, until there is room again; it reads and lives meanwhile`, {
    skip: missing || skip,
  }, async () => {
    await using parts = new AsyncDisposableStack()
    const disk = parts.use(new SmallDisk())
    const DATABASE_URL = await databaseOn[kind](disk, parts)
    // The thread that meets it tells the other, on each engine in its own way.
    const app = parts.use(await startTestApp({ DATABASE_URL, TOKEN_KEYS: tokenKeys, THREADS: '2' }))
    const status = async (path: string) => (await ask(app.url + path)).status
    const write = async () => (await send(app, 'POST /users', somebody())).status
    /** On connections of their own, so that both threads are asked. */
    const readiness = async () => {
      const answers = Array.from({ length: 10 }, () => sendRaw(app.port, ready))
      return [...new Set((await Promise.all(answers)).map(answer => answer.status))]
    }
    assert.deepEqual(await readiness(), [200])
    const { token } = await createMember(app)
    await read(app, 'mutation { createPost(title: "t", content: "c") { id } }', { token })
    disk.fill()
    await waitUntil(async () => (await write()) === 503)
    let known: readonly number[] = []
    for (let tries = 0; tries < 50 && `${known}` !== '503'; tries++) known = await readiness()
    assert.deepEqual(known, [503], 'both threads know')
    for (let times = 0; times < 3; times++) {
      // In PostgreSQL, a row that is changed finds room in its page.
      const { status } = await query(app, 'mutation { likePost(id: 1) { likes } }', { token })
      assert.equal(status, kind === 'postgres' ? 200 : 503)
      assert.deepEqual(await readiness(), [503])
    }
    assert.match((await ask(`${app.url}/metrics`)).body, /^duet_ready 0$/m)
    assert.deepEqual([await status('/users'), await status('/health/live')], [200, 200])
    disk.makeRoom()
    await waitUntil(async () => `${await readiness()}` === '200')
    assert.equal(await write(), 201)
  })
}
