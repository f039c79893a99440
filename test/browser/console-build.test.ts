import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { build } from 'vite'
import { temporaryFolder } from '../support/folder.ts'
import { notInQuick } from '../support/form.ts'

const source = join(import.meta.dirname, '../../console')

function filesIn(folder: string): ReadonlyMap<string, string> {
  const names = readdirSync(folder, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile())
  const paths = names.map(({ parentPath, name }) => join(parentPath, name)).sort()
  return new Map(paths.map(path => [path.slice(folder.length), readFileSync(path, 'utf8')]))
}

test('the committed build of the console equals a new build of its sources; else run `npm run build`', {
  skip: notInQuick,
}, async () => {
  using folder = temporaryFolder()
  const outDir = join(folder.path, 'dist')
  await build({ configFile: join(source, 'vite.config.ts'), logLevel: 'error', build: { outDir } })
  const [committed, rebuilt] = [filesIn(join(source, 'dist')), filesIn(outDir)]
  assert.deepEqual([...committed.keys()], [...rebuilt.keys()])
  for (const [name, text] of rebuilt) assert.ok(committed.get(name) === text, `${name} differs`)
})
