import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { appendFileSync, chownSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { startTestApp } from '../support/app.ts'
import { postgres } from '../support/engines.ts'
import { temporaryFolder } from '../support/folder.ts'
import { onlyInFull } from '../support/form.ts'
import { tokenKeys } from '../support/keys.ts'
import { freePort } from '../support/ports.ts'
import { postgresFolder, program, serverUser } from '../support/postgres.ts'
import { pay, wasReplayed } from '../support/rest.ts'
import { executeOn } from '../support/templates.ts'

/** The commands of the guide, in its order: archiving, copying the files, returning to a moment. */
const guide = readFileSync(join(import.meta.dirname, '..', '..', 'docs', 'operations.md'), 'utf8')
const [, section = ''] = /\n### Point-in-time recovery\n([\s\S]*?)\n##/.exec(guide) ?? []
const [archiving = '', copying = '', returning = ''] = Array.from(
  section.matchAll(/```sh\n([\s\S]*?)```/g),
  ([, block]) => block,
)

test('the commands of the guide bring PostgreSQL back to the moment before a mishap, with every payment until then', {
  skip: postgres.skip || onlyInFull,
}, async () => {
  using folder = temporaryFolder(postgresFolder())
  const user = serverUser()
  if (user !== undefined) chownSync(folder.path, user.uid, user.gid)
  const data = join(folder.path, 'data')
  const port = await freePort()
  const url = `postgres://duet@127.0.0.1:${port}/postgres`
  const settings = `port = ${port}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = '${folder.path}'\n`
  const [places = ''] = archiving.split('\n')
  /** Runs a part of the guide, with the places of this test, and systemd played by PostgreSQL's own program. */
  const run = async (commands: string) => {
    const script = `PATH=${join(program('psql'), '..')}:$PATH
      export PGHOST=127.0.0.1 PGPORT=${port} PGUSER=duet PGDATABASE=postgres PGDATA=${data}
      sudo() { "$@"; }
      systemctl() { pg_ctl --wait --log=${data}.log "$1" > ${data}.ctl; }
      ${places.replace(/\/\S*main/, data).replaceAll('/mnt/backup', folder.path)}
      ${commands.replace(places, '')}`
    return await promisify(execFile)('sh', ['-euc', script], { ...user, cwd: folder.path })
  }
  await run(`initdb -U duet -A trust -E UTF8 --no-sync > ${data}.log`)
  appendFileSync(join(data, 'postgresql.conf'), settings)
  await run('systemctl start')
  try {
    await run(archiving)
    await run(copying)
    const payAll = async (names: readonly string[]) => {
      await using app = await startTestApp({ DATABASE_URL: url, TOKEN_KEYS: tokenKeys })
      return await Promise.all(names.map(name => pay(app, name, { amount: 5 })))
    }
    const before = Array.from({ length: 200 }, (_, number) => `before-${number}`)
    const paid = await payAll(before)
    await delay(1_100) // the moment has whole seconds
    const moment = `${new Date().toISOString().slice(0, 19)}+00`
    await delay(1_100)
    await payAll(['after'])
    await executeOn(url, 'delete from idempotency_keys; delete from payments')

    const copied = new Date().toISOString().slice(0, 10)
    await run(returning.replace('2026-01-25', copied).replace('2026-01-31 11:59:00+00', moment.replace('T', ' ')))
    const again = await payAll([...before, 'after'])
    const after = again.pop() ?? assert.fail()
    assert.ok(again.every(wasReplayed) && after.status === 201 && !wasReplayed(after))
    const bodies = (answers: typeof paid) => answers.map(({ body }) => body)
    assert.deepEqual(bodies(again), bodies(paid))
    await run(copying.replace('$(date +%F)', 'next')) // the log goes on
  } finally {
    await run('pg_ctl --mode=immediate stop')
  }
})
