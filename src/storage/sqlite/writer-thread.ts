import { flushCompileCache } from 'node:module'
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { unavailable } from '../../core/errors.ts'
import { type SentError, toSent } from '../../core/sent-error.ts'
import type { Catalogue, Steps } from '../verb.ts'
import { isDamage, SqliteConnection } from './connection.ts'
import { FileWatch } from './file-watch.ts'
import { commitTogether, type Job, pingVerb, type Result } from './group-commit.ts'

/**
 * The writer thread. A durable commit waits for the disk; in this thread, the wait delays no reader. Jobs that other
 * threads send meanwhile share the next commit. Messages are JSON strings, which cross threads faster than objects.
 * The thread that has started it sends the ports on which jobs arrive, and `close` at the end.
 */
export type ToWriter = readonly Job[] | 'damaged' | 'close'
/** `lost`: nothing can be read or written until a restart, because the next process will open another file. */
export type FromWriter = Committed | { readonly lost: string }
export interface Committed {
  /** How many verbs the commit had. Only the sender of the first is told; others get 0. */
  readonly verbs: number
  readonly results: readonly SentResult[]
  /** How long all its verbs ran, and how long the commit itself took, in milliseconds. */
  readonly runMs: number
  readonly commitMs: number
}
export type SentResult = readonly [id: number, outcome: unknown, error?: SentError]

export interface WriterData {
  readonly path: string
  readonly catalogueUrl: string
  readonly busyMs: number
}

const largestBatch = 512
/** How long a transaction takes in further jobs: those that show much must not hold up all others. */
const longestBatchMs = 50
const lookEveryMs = 1000

if (parentPort === null) throw new Error('This module runs as a worker thread only')
const parent: MessagePort = parentPort
const { path, catalogueUrl, busyMs } = workerData as WriterData
const ports = new Set<MessagePort>()
let lost: string | undefined
const connection = new SqliteConnection(path, 'write', busyMs)
const [userVersion] = connection.run({ text: 'pragma user_version', values: [] })
const watch = new FileWatch(path, Number(userVersion?.[0]))
const verbs = { ...((await import(catalogueUrl)) as Catalogue).verbs, [pingVerb]: ping }
setImmediate(flushCompileCache) // a process that is killed would keep nothing

const timer = setInterval(() => {
  try {
    look()
  } catch {} // the next write gets this error
}, lookEveryMs)

parent.on('message', (message: MessagePort | 'close') => {
  if (message === 'close') closeAll()
  else listenTo(message)
})

function listenTo(port: MessagePort): void {
  ports.add(port)
  port.on('message', (text: string) => commitAll(port, text))
  port.on('close', () => ports.delete(port))
}

/** Commits the jobs of a message together with all others that have arrived. */
function commitAll(first: MessagePort, text: string): void {
  const messages: [from: MessagePort, jobs: number][] = []
  const closing = new Set<MessagePort>()
  let room = largestBatch
  const end = performance.now() + longestBatchMs
  const take = (port: MessagePort, message: string): readonly Job[] => {
    const jobs = JSON.parse(message) as ToWriter
    if (jobs === 'close') closing.add(port)
    if (jobs === 'damaged') lose('is damaged')
    if (typeof jobs === 'string') return []
    room -= jobs.length
    messages.push([port, jobs.length])
    return jobs
  }
  /** One message of each thread, so that none of them waits for a busy one. */
  const more = (): readonly Job[] => {
    const jobs: Job[] = []
    for (const port of ports) {
      if (room <= 0 || performance.now() > end) break
      if (closing.has(port)) continue
      const next: { message: string } | undefined = receiveMessageOnPort(port)
      if (next !== undefined) jobs.push(...take(port, next.message))
    }
    return jobs
  }
  const jobs = take(first, text)
  if (jobs.length > 0) {
    const times = [performance.now()]
    const results = checked(commitTogether(connection, verbs, jobs, more, () => times.push(performance.now())))
    const [begun = 0, ran = begun] = [times[0], times.at(-1)]
    const took = { runMs: ran - begun, commitMs: performance.now() - ran }
    let answered = 0
    for (const [port, count] of messages) {
      const verbs = answered === 0 ? results.length : 0
      send(port, { verbs, results: results.slice(answered, answered + count).map(toResult), ...took })
      answered += count
    }
  }
  for (const port of closing) port.close()
}

/** Commits to a lost file do not count, so their verbs are rejected. */
function checked(results: readonly Result[]): readonly Result[] {
  try {
    if (results.some(([, , error]) => isDamage(error?.cause))) lose('is damaged')
    look()
    if (lost === undefined) return results
    throw new Error(lost)
  } catch (error) {
    return results.map(([id]) => [id, undefined, unavailable(error)])
  }
}

function look(): void {
  const loss = lost === undefined ? watch.loss() : undefined
  if (loss !== undefined) lose(loss)
}

function lose(how: string): void {
  if (lost !== undefined) return
  lost = `The database file ${path} ${how}`
  for (const port of [parent, ...ports]) send(port, { lost })
}

function toResult([id, outcome, error]: Result): SentResult {
  return error === undefined ? [id, outcome] : [id, null, toSent(error)]
}

/** Writes a number that the file has already. So it fails when nothing can be written, for example on a full disk. */
function* ping(): Steps<void> {
  const [row] = yield { text: 'pragma user_version', values: [] }
  yield { text: `pragma user_version = ${Number(row?.[0])}`, values: [] }
}

/** Nothing keeps the thread alive then. */
function closeAll(): void {
  clearInterval(timer) // closing the file deletes its WAL file
  for (const port of [...ports, parent]) port.close()
  connection[Symbol.dispose]()
  watch[Symbol.dispose]()
}

function send(port: MessagePort, message: FromWriter): void {
  port.postMessage(JSON.stringify(message))
}
