import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../support/folder.ts'

const root = join(import.meta.dirname, '..', '..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const entrypoint = JSON.parse(/^ENTRYPOINT (.*)$/m.exec(read('deploy/Dockerfile'))?.[1] ?? '[]') as string[]

const lines: Readonly<Record<string, { readonly line: readonly string[]; readonly program: string }>> = {
  'npm start': { line: ['sh', '-c', JSON.parse(read('package.json')).scripts.start], program: 'bin/duet.mjs' },
  'the image': { line: [...entrypoint, 'serve'], program: '/app/bin/duet.mjs' },
}

for (const [name, { line, program }] of Object.entries(lines)) {
  test(`${name} gives malloc an arena for each thread that serves, and bounds the new objects and the threads of V8`, () => {
    using folder = temporaryFolder()
    writeFileSync(join(folder.path, 'node'), '#!/bin/sh\necho "$MALLOC_ARENA_MAX" "$@"', { mode: 0o755 })
    const started = (threads: string, arenas = '') => {
      const [command = '', ...args] = line
      const env = { PATH: `${folder.path}:${process.env.PATH}`, THREADS: threads, MALLOC_ARENA_MAX: arenas }
      return execFileSync(command, args, { env, encoding: 'utf8' }).trim()
    }
    const flags = '--max-semi-space-size=8 --v8-pool-size=0'
    assert.ok(read('deploy/duet').includes(`node ${flags} `), 'systemd starts it with the same flags')
    const rest = `${flags} ${program} serve`
    assert.equal(started('3'), `3 ${rest}`)
    assert.equal(started('3', '5'), `5 ${rest}`, 'an own number counts')
    assert.match(started(''), new RegExp(`^[1-9]\\d* ${rest}$`))
    assert.ok(Number.parseInt(started(''), 10) >= availableParallelism())
  })
}
