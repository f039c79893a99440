import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { Documents } from '../src/graphql/language/documents.ts'
import { loadSchema } from '../src/graphql/language/schema.ts'
import { Client } from './client.ts'
import { duetProgram, malloc } from './core/contenders.ts'
import { BenchServer, probed } from './core/server.ts'
import { type Database, databaseFor, type Kind } from './databases.ts'
import { type Candidate, mutations, queries, sent } from './worst/candidates.ts'
import { contents, fillStatementsFor, latestPost } from './worst/data.ts'
import { documents, removals, requests } from './worst/documents.ts'
import { type Measured, Meter } from './worst/measure.ts'
import { neighbours } from './worst/neighbours.ts'
import { RandomOperations, testOperations } from './worst/random.ts'
import { printGoals, printLatencies, printWorst } from './worst/report.ts'
import { placesIn } from './worst/selections.ts'
import { costOfEvent, subscriptions } from './worst/subscriptions.ts'

// A search for the most expensive operation that one client may ask for: shapes written by hand and random ones, on
// 100,000 posts of 4 KB by one author with 100,000 comments on one of them. It prints the ten worst by CPU of the server,
// stall of its event loop, memory and time in the database, over HTTP and as a subscription (per event), and whether the
// goals are met. Refused operations cost something too, and are counted.

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    engine: { type: 'string' },
    posts: { type: 'string', default: '100000' },
    /** Only what has this in its name. */
    only: { type: 'string', default: '' },
  },
})
const effort = values.quick
  ? { times: 2, random: 30, test: 10, windowMs: 4_000, by: ['cpu'] as const }
  : { times: 4, random: 1500, test: 300, windowMs: 60_000, by: ['cpu', 'database'] as const }
const size = { posts: Number(values.posts) }
const places = placesIn(size)
const kinds: readonly Kind[] = values.engine === undefined ? ['sqlite', 'postgres'] : [values.engine as Kind]
const prepared = new Documents({ schema: loadSchema(), maxDepth: 5, suggestions: false })

for (const kind of kinds) {
  const folder = mkdtempSync(join(process.env.BENCH_DIR ?? tmpdir(), 'duet-bench-'))
  try {
    await using stack = new AsyncDisposableStack()
    const database = await databaseFor(kind, folder, stack, fillStatementsFor(kind, size))
    const environment = {
      ...database.environment,
      ...malloc,
      PORT: '0',
      LOG_LEVEL: 'fatal',
      DEMO_DATA: 'false',
      LOGIN_LIMIT_MAX: '0',
    }
    const program = [...probed, ...duetProgram]
    const start = (more: Readonly<Record<string, string>>) => BenchServer.start(program, { ...environment, ...more })
    const dearest = await during(start({ RATE_LIMIT_MAX: '0' }), server => searchOn(kind, server, database))
    await during(start({ RATE_LIMIT_PATHS: '/' }), server => annoy(kind, server, [...new Set(dearest)]))
    await during(start({ RATE_LIMIT_MAX: '0' }), server => remove(kind, server, database))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Returns the dearest by each measure. */
async function searchOn(kind: Kind, server: BenchServer, database: Database): Promise<readonly Candidate[]> {
  using client = new Client(server.port)
  await client.logIn(contents.author)
  const meter = new Meter(server, client, database)

  const byHand = [...queries(places), ...mutations(places), ...documents(), ...requests()].filter(isWanted)
  for (const candidate of byHand.slice(0, 30)) await meter.measure(candidate, 1) // warm
  const overHttp: Measured[] = []
  for (const candidate of byHand) overHttp.push(await measured(meter, candidate, effort.times))
  const dearest = effort.by.flatMap(measure => {
    const [most] = overHttp.toSorted((a, b) => b[measure] - a[measure])
    return byHand.find(({ name }) => name === most?.name) ?? []
  })
  if ('random'.includes(values.only)) overHttp.push(...(await searchAtRandom(meter)))
  printWorst(`${kind}, over HTTP`, overHttp)

  const events: Measured[] = []
  for (const candidate of subscriptions(places).filter(isWanted)) {
    const costs = await costOfEvent(meter, server.port, candidate, effort.times)
    events.push({ ...costs, name: candidate.name, text: candidate.text, cost: costOf(candidate.text, {}) })
  }
  printWorst(`${kind}, a subscription, per event`, events)

  console.log()
  printGoals(`${kind}, over HTTP`, overHttp)
  printGoals(`${kind}, per event`, events)
  return dearest
}

async function remove(kind: Kind, server: BenchServer, database: Database): Promise<void> {
  using client = new Client(server.port)
  await client.logIn(contents.author)
  const meter = new Meter(server, client, database)
  const removed: Measured[] = []
  for (const candidate of removals(latestPost(size), contents.author).filter(isWanted)) {
    removed.push(await measured(meter, candidate, 1))
  }
  printGoals(`${kind}, removals`, removed)
}

function isWanted({ name }: { readonly name: string }): boolean {
  return name.includes(values.only)
}

async function during<Outcome>(
  started: Promise<BenchServer>,
  work: (server: BenchServer) => Promise<Outcome>,
): Promise<Outcome> {
  await using server = await started
  return await work(server)
}

async function measured(meter: Meter, candidate: Candidate, times: number): Promise<Measured> {
  const { name, path, method, text, variables = {} } = candidate
  const costs = await meter.measure(candidate, times)
  const cost = path === '/graphql' && text !== undefined ? costOf(text, variables) : undefined
  return { ...costs, name, text: text ?? `${method} ${path}`, cost }
}

/** New operations, and changed forms of the most expensive ones so far. Expensive ones are measured again. */
async function searchAtRandom(meter: Meter): Promise<readonly Measured[]> {
  const random = new RandomOperations(places)
  const found: (Measured & { readonly candidate: Candidate })[] = []
  for (let count = 0; count < effort.random; count++) {
    const candidate = random.next(found.slice(0, 12).map(each => each.candidate))
    const once = await measured(meter, candidate, 1)
    const expensive = found.at(11)?.cpu ?? 0
    const costs = once.cpu > expensive ? await measured(meter, candidate, effort.times) : once
    found.push({ ...costs, candidate })
    found.sort((a, b) => b.cpu - a.cpu)
  }
  for (const candidate of testOperations(places, effort.test)) {
    found.push({ ...(await measured(meter, candidate, effort.times)), candidate })
  }
  return found
}

/** A client sends the dearest operations, as many as the default limits allow. How long do others wait? */
async function annoy(kind: Kind, server: BenchServer, candidates: readonly Candidate[]): Promise<void> {
  const { windowMs } = effort
  const count = Math.round(windowMs / 600)
  const others = () => neighbours({ port: server.port, perSecond: 50, ms: windowMs })
  using clients = new DisposableStack()
  const first = clients.use(new Client(server.port))
  await first.logIn(contents.author)
  await others() // warm
  const alone = await others()
  printLatencies(`${kind}, others, without load`, alone)
  let address = 0
  for (const candidate of candidates) {
    for (const way of ['evenly', 'at once'] as const) {
      const client = clients.use(new Client(server.port, `127.0.2.${++address}`)) // which has sent nothing yet
      client.token = first.token
      const latencies = others()
      const annoying = Array.from({ length: count }, async (_, number) => {
        if (way === 'evenly') await delay((number * windowMs) / count)
        await client.send(candidate.path, sent(candidate, `${address}n${number}`))
      })
      await Promise.allSettled(annoying)
      const title = `${kind}, others during ${count} x "${candidate.name}" in ${windowMs / 1000} s, ${way}`
      printLatencies(title, await latencies, alone)
    }
  }
}

/** What the operation costs by the formula, unless it is refused before that. */
function costOf(text: string, variables: Readonly<Record<string, unknown>>): number | undefined {
  try {
    const operation = prepared.prepare(text).operation(undefined)
    return operation.cost(operation.coerce(variables)).cost
  } catch {
    return undefined
  }
}
