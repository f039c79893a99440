import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { forLibpq } from '../../src/storage/postgres/dump.ts'
import { postgres } from '../support/engines.ts'
import { temporaryFolder } from '../support/folder.ts'
import { program } from '../support/postgres.ts'
import { runDuet } from '../support/process.ts'

const { skip } = postgres

test('duet backup of PostgreSQL writes a complete dump that only its owner can read, and tells nobody the password', {
  skip,
}, async () => {
  await using database = await postgres.create()
  using folder = temporaryFolder()
  const [file, told] = [join(folder.path, 'duet.dump'), join(folder.path, 'told')]
  // In place of pg_dump, which tells what it was given, and then is pg_dump.
  const script = `#!/bin/sh\n{ echo "$@"; echo "secret: $PGPASSWORD"; } > ${told}\nexec ${program('pg_dump')} "$@"\n`
  writeFileSync(join(folder.path, 'pg_dump'), script, { mode: 0o755 })
  const DATABASE_URL = database.location.replace('duet@', 'duet:p%20a%23ss@')
  const env = { DATABASE_URL, PATH: `${folder.path}:${process.env.PATH}` }
  const { code, stdout, stderr } = await runDuet(['backup', file], { env })
  assert.deepEqual([code, stdout], [0, `The database is copied to ${file}.\n`], stderr)
  assert.equal(statSync(file).mode & 0o777, 0o600)
  const [args, secret] = readFileSync(told, 'utf8').split('\n')
  assert.equal(secret, 'secret: p a#ss')
  assert.doesNotMatch(args ?? '', /ss@|p%20a/)
  const list = execFileSync(program('pg_restore'), ['--list', file], { encoding: 'utf8' })
  assert.match(list, /TABLE DATA public payments/)
  assert.doesNotMatch(list, /TABLE DATA public outbox/)
})

test('a dump that fails is told in one line, and leaves no file', { skip }, async () => {
  using folder = temporaryFolder()
  const file = join(folder.path, 'duet.dump')
  const PATH = dirname(program('pg_dump'))
  const fail = async (path: string, DATABASE_POOLER = 'none') => {
    const env = { DATABASE_URL: 'postgres://duet:secret@127.0.0.1:1/duet', DATABASE_POOLER, PATH: path }
    const { code, stderr } = await runDuet(['backup', file], { env })
    assert.equal(code, 1)
    assert.doesNotMatch(stderr, /secret/)
    assert.deepEqual(readdirSync(folder.path), [])
    return stderr
  }
  assert.match(await fail(PATH), /^duet: DATABASE_URL: pg_dump: error: [^\n]*refused[^\n]*\n$/)
  const behindPooler = await fail(PATH, 'transaction')
  assert.match(behindPooler, /^duet: DATABASE_POOLER: pg_dump needs the address of PostgreSQL itself/)
  assert.match(await fail(folder.path), /^duet: pg_dump is not installed, or not in PATH\n$/)
})

test("PostgreSQL's own programs get an address that they read as the service does", () => {
  const cases = {
    'postgres://a:b@h:5/d?sslmode=require': 'postgres://a@h:5/d?sslmode=verify-full',
    'postgres://a:b@h/d?sslmode=require&uselibpqcompat=true': 'postgres://a@h/d?sslmode=require',
    'postgres://h/d?ssl=true': 'postgres://h/d?sslmode=verify-full',
    'postgres://h/d?sslmode=no-verify': 'postgres://h/d?sslmode=require',
    'postgres://h/d?sslmode=disable&options=-c%20search_path%3Dx&password=b':
      'postgres://h/d?sslmode=disable&options=-c%20search_path%3Dx',
    'postgresql://a+b@h/d': 'postgresql://a+b@h/d',
  }
  for (const [url, expected] of Object.entries(cases)) assert.equal(forLibpq(url).address, expected)
})
