import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../support/folder.ts'

export const root = join(import.meta.dirname, '..', '..')

/** A page whose code blocks name a file each, with the expected output of the programs. */
export class Page {
  readonly examples: readonly { readonly file: string; readonly code: string; readonly output: string | undefined }[]
  /** The settings of GraphQL Code Generator. */
  readonly generator: {
    readonly schema: string
    readonly documents: string
    readonly generates: Readonly<Record<string, { readonly plugins: readonly string[]; readonly config: object }>>
  }

  constructor(file: string) {
    const text = readFileSync(join(root, file), 'utf8')
    const blocks = text.matchAll(/```\w+\n(?:\/\/|#) (\S+)\n(.*?)```\n(?:\n```\n(.*?)```)?/gs)
    this.examples = Array.from(blocks, ([, file = '', code = '', output]) => ({ file, code, output }))
    this.generator = JSON.parse(/```json\n(.*?)```/s.exec(text)?.[1] ?? assert.fail())
  }

  get programs() {
    return this.examples.filter(({ file }) => /\.m?[jt]s$/.test(file))
  }

  /** A folder with the files of the page, in which the packages of this project and its client are installed. */
  folder(address: string) {
    const folder = temporaryFolder()
    const packages = join(folder.path, 'node_modules')
    mkdirSync(packages)
    for (const name of readdirSync(join(root, 'node_modules')))
      symlinkSync(join(root, 'node_modules', name), join(packages, name))
    symlinkSync(join(root, 'client'), join(packages, 'duet-client'))
    writeFileSync(join(folder.path, 'package.json'), '{ "type": "module" }')
    for (const { file, code } of this.examples) {
      writeFileSync(join(folder.path, file), code.replaceAll('http://127.0.0.1:4000', address))
    }
    return folder
  }
}
