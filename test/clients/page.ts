import assert from 'node:assert/strict'
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../support/folder.ts'

export const root = join(import.meta.dirname, '..', '..')
const page = readFileSync(join(root, 'docs', 'clients.md'), 'utf8')

/** The code blocks of docs/clients.md that name a file, and the expected output of each. */
export const examples = [...page.matchAll(/```\w+\n(?:\/\/|#) (\S+)\n(.*?)```\n(?:\n```\n(.*?)```)?/gs)].map(
  ([, file = '', code = '', output]) => ({ file, code, output }),
)

/** The settings of GraphQL Code Generator on the page. */
export const generatorSettings = JSON.parse(/```json\n(.*?)```/s.exec(page)?.[1] ?? assert.fail())

/** A folder with the files of the page, in which the packages of this project are available. */
export function folderOfExamples(address = 'http://127.0.0.1:4000') {
  const folder = temporaryFolder()
  symlinkSync(join(root, 'node_modules'), join(folder.path, 'node_modules'))
  writeFileSync(join(folder.path, 'package.json'), '{ "type": "module" }')
  for (const { file, code } of examples) {
    writeFileSync(join(folder.path, file), code.replaceAll('http://127.0.0.1:4000', address))
  }
  return folder
}
