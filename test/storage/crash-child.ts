import { setTimeout as delay } from 'node:timers/promises'
import { databaseAt } from '../support/engines.ts'
import { catalogue } from './contract-verbs.ts'

// Writes as fast as it can with many workers and prints each key, until it is killed.
const [kind, location, name, when] = process.argv.slice(2) as ['sqlite' | 'postgres', string, string, string]
const engine = databaseAt(kind, location).open(catalogue)
await engine.ping()

await Promise.all(
  Array.from({ length: 32 }, async (_, hand) => {
    for (let index = 0; ; index++) {
      const key = `${name}-${hand}-${index}`
      if (when === 'too early') {
        process.stdout.write(`${key}\n`)
        await delay(20) // so that some keys are always printed but not written when the process is killed
      }
      await engine.write('put', key, 'v')
      if (when === 'when acknowledged') process.stdout.write(`${key}\n`)
    }
  }),
)
