#!/usr/bin/env node
// Plain JavaScript, so that an old Node can say what is wrong instead of failing on the first type.
if (Number.parseInt(process.versions.node, 10) < 24) {
  console.error(
    `duet: Node 24 or newer is needed, this is ${process.versions.node}. Run "npm install" without --omit=optional, then use "npm start".`,
  )
  process.exit(1)
}
const { main } = await import('../src/main.ts')
process.exitCode = await main(process.argv.slice(2))
