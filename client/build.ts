import { execFile } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { build } from 'vite'

const here = import.meta.dirname

/** Builds the client from its sources into a folder: one module for browsers and Node, and its types. */
export async function buildClient(folder: string): Promise<void> {
  await build({
    root: here,
    configFile: false,
    logLevel: 'warn',
    build: {
      target: 'es2022',
      outDir: folder,
      emptyOutDir: false,
      minify: true,
      rolldownOptions: { output: { minify: true } },
      lib: { entry: join(here, 'src', 'index.ts'), formats: ['es'], fileName: () => 'duet-client.js' },
    },
  })
  const tsc = join(here, '..', 'node_modules', '.bin', 'tsc')
  const emit = [
    '--noEmit',
    'false',
    '--declaration',
    '--emitDeclarationOnly',
    '--outDir',
    folder,
    '--rootDir',
    join(here, 'src'),
  ]
  await promisify(execFile)(tsc, ['-p', here, ...emit]).catch(({ stdout }) => {
    throw new Error(stdout)
  })
}

if (import.meta.main) {
  const dist = join(here, 'dist')
  rmSync(dist, { recursive: true, force: true })
  await buildClient(dist)
}
