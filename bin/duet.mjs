#!/usr/bin/env node
import module from 'node:module'
import { join } from 'node:path'

// Plain JavaScript, so that an old Node can say what is wrong instead of failing on the first type.
if (Number.parseInt(process.versions.node, 10) < 24) {
  console.error(
    `duet: Node 24 or newer is needed, this is ${process.versions.node}. Run "npm install" without --omit=optional, then use "npm start".`,
  )
  process.exit(1)
}
// Compiled code is kept for the next start, which then takes half the time. Without a place to write there is none to keep.
// Threads learn the place from the environment.
process.env.NODE_COMPILE_CACHE ||= join(import.meta.dirname, '..', 'node_modules', '.cache', 'compile')
module.enableCompileCache(process.env.NODE_COMPILE_CACHE)
const { main } = await import('../src/main.ts')
process.exitCode = await main(process.argv.slice(2))
