import { execFile } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { build, type Plugin } from 'vite'

const here = import.meta.dirname

/** Builds the client from its sources into a folder: a module for browsers and Node, one for React, and their types. */
export async function buildClient(folder: string): Promise<void> {
  await buildModule(folder, 'index.ts', 'duet-client.js')
  await buildModule(folder, 'react.ts', 'react.js')
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

/** The hooks use the installed React and the client that the application uses: neither is part of their module. */
async function buildModule(folder: string, source: string, name: string): Promise<void> {
  const plugin: Plugin = {
    name: 'other-modules',
    enforce: 'pre',
    resolveId: id => (id === './index.ts' ? { id: './duet-client.js', external: true } : undefined),
  }
  await build({
    root: here,
    configFile: false,
    logLevel: 'warn',
    plugins: [plugin],
    build: {
      target: 'es2022',
      outDir: folder,
      emptyOutDir: false,
      minify: true,
      rolldownOptions: { external: 'react', output: { minify: true } },
      lib: { entry: join(here, 'src', source), formats: ['es'], fileName: () => name },
    },
  })
}

if (import.meta.main) {
  const dist = join(here, 'dist')
  rmSync(dist, { recursive: true, force: true })
  await buildClient(dist)
}
