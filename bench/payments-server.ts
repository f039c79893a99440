import { randomUUID } from 'node:crypto'
import { pino } from 'pino'
import { startApp } from '../src/app.ts'
import { readConfig } from '../src/config.ts'
import { SqliteEngine } from '../src/storage/sqlite/engine.ts'

// Duet as `duet serve` starts it; on request with one write at a time, so that each is alone in its commit.
const [way, path] = process.argv.slice(2)
if (way === 'one commit each') {
  const write = SqliteEngine.prototype.write
  let last: Promise<unknown> = Promise.resolve()
  SqliteEngine.prototype.write = function (...args) {
    const turn = last.then(() => write.apply(this, args))
    last = turn.catch(() => {})
    return turn as ReturnType<typeof write>
  }
}
const config = readConfig({ PORT: '0', DATABASE_URL: `sqlite:${path}`, LOG_LEVEL: 'warn', DEMO_DATA: 'false' })
const world = { logger: pino({ level: 'warn' }), clock: { now: Date.now }, randomness: { id: randomUUID } }
const { url } = await startApp(config, world)
console.log(`${url}/health`)
