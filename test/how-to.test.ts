import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'
import { engineKinds } from './support/engines.ts'
import { ask } from './support/http.ts'
import { tokenKeys } from './support/keys.ts'
import { serveDuet, temporaryFolder } from './support/process.ts'

const root = join(import.meta.dirname, '..')

/** A copy of the source in which a guide was followed. */
function copyWith(guide: string): Disposable & { readonly path: string } {
  const copy = temporaryFolder()
  for (const name of ['api', 'bin', 'migrations', 'package.json', 'src', 'tsconfig.json']) {
    cpSync(join(root, name), join(copy.path, name), { recursive: true })
  }
  symlinkSync(join(root, 'node_modules'), join(copy.path, 'node_modules'))
  let changes = 0
  const text = readFileSync(join(root, 'docs', 'how-to', guide), 'utf8')
  for (const [, file = '', before, block = ''] of text.matchAll(change)) {
    const path = join(copy.path, file)
    const added = block.replaceAll(/^ {3}/gm, '')
    if (before === undefined) writeFileSync(path, added, { flag: 'wx' })
    else {
      const lines = readFileSync(path, 'utf8').split('\n')
      const at = lines.findIndex(line => line.includes(before))
      assert.notEqual(at, -1, `${file} has no ${before}`)
      writeFileSync(path, lines.toSpliced(at, 0, added.trimEnd()).join('\n'))
    }
    changes++
  }
  assert.ok(changes > 0, 'the guide changes nothing')
  return copy
}

/** "New file `…`:" or "In `…`, before `…`:", and a block. */
const change = /^ {3}(?:New file|In) `([^`]+)`(?:, before `([^`]+)`)?:\n\n {3}```\n([\s\S]*?) {3}```$/gm

describe('The guide that adds a field to users', () => {
  it('leads to a program whose types fit', async () => {
    using copy = copyWith('add-a-field.md')
    const config = join(copy.path, 'tsconfig.json')
    writeFileSync(config, readFileSync(config, 'utf8').replace('["src", "test", "bench"]', '["src"]'))
    await promisify(execFile)(join(root, 'node_modules', '.bin', 'tsc'), ['--project', copy.path])
  })

  for (const kind of engineKinds) {
    it(`leads to a field that is stored, changed and selected, on ${kind.name}`, { skip: kind.skip }, async () => {
      using copy = copyWith('add-a-field.md')
      await using database = await kind.createEmpty()
      const address = kind.kind === 'sqlite' ? `sqlite:${database.location}` : database.location
      const env = { DATABASE_URL: address, TOKEN_KEYS: tokenKeys, DEMO_DATA: 'false' }
      await using duet = serveDuet(env, { root: copy.path })
      const { url } = await duet.address()
      const send = async (method: string, path: string, body: object) => {
        const init = { method, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
        return JSON.parse((await ask(url + path, init)).body)
      }
      const user = { name: 'Ann', email: 'ann@example.com', bio: 'Writes.' }
      assert.deepEqual(await send('POST', '/users', user), { id: 1, ...user })
      assert.deepEqual(await send('PATCH', '/users/1', { bio: 5 }), { error: 'bio must be a string' })
      assert.equal((await send('PATCH', '/users/1', { bio: 'Reads.' })).bio, 'Reads.')
      const query = '{ user(id: 1) { name bio } users { bio } }'
      assert.deepEqual(await send('POST', '/graphql', { query }), {
        data: { user: { name: 'Ann', bio: 'Reads.' }, users: [{ bio: 'Reads.' }] },
      })
    })
  }
})
