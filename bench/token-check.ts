import { randomUUID } from 'node:crypto'
import { generateKeySet, readKeys } from '../src/security/keys.ts'
import { JwtSigner } from '../src/security/tokens.ts'

// What the check of a token costs, without the look at its user's row: a hot one, whose signature was seen to be good
// before, against a cold one, which is verified. Interleaved in one run; each round has new tokens.

const rounds = 7
const coldTokens = 500
const hotChecks = 200_000

const signer = new JwtSigner({
  keys: await readKeys(await generateKeySet()),
  ttlSeconds: 3600,
  clock: { now: Date.now },
  randomness: { id: randomUUID },
})

async function microseconds(times: number, check: (index: number) => Promise<unknown>): Promise<number> {
  const start = performance.now()
  for (let index = 0; index < times; index++) {
    if ((await check(index)) === undefined) throw new Error('A good token was refused')
  }
  return ((performance.now() - start) * 1000) / times
}

const hot: number[] = []
const cold: number[] = []
for (let round = 0; round <= rounds; round++) {
  const tokens = await Promise.all(
    Array.from({ length: coldTokens }, () => signer.issue({ id: 1, role: 'member', tokenVersion: randomUUID() })),
  )
  const coldCost = await microseconds(coldTokens, index => signer.verify(tokens[index] ?? ''))
  const hotCost = await microseconds(hotChecks, index => signer.verify(tokens[index % 100] ?? ''))
  if (round === 0) continue // warming up
  cold.push(coldCost)
  hot.push(hotCost)
}

const median = (samples: number[]) => samples.toSorted((a, b) => a - b)[samples.length >> 1] ?? Number.NaN
const range = (samples: number[]) => `${Math.min(...samples).toFixed(2)}-${Math.max(...samples).toFixed(2)}`
for (const [name, samples] of Object.entries({ hot, cold })) {
  console.log(`${name.padEnd(5)} ${median(samples).toFixed(2).padStart(8)} µs a check (${range(samples)})`)
}
