import { flushCompileCache } from 'node:module'
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { unavailable } from '../../core/errors.ts'
import { type SentError, toSent } from '../../core/sent-error.ts'
import type { Catalogue, Steps } from '../verb.ts'
import { isDamage, SqliteConnection } from './connection.ts'
import { watchFile } from './file-watch.ts'
import { commitTogether, type Job, pingVerb, type Result } from './group-commit.ts'

/**
 * The writer thread. A durable commit waits for the disk; in this thread, the wait delays no reader. Jobs that other
 * threads send meanwhile share the next commit. Messages are JSON strings, which cross threads faster than objects. Only
 * long results are objects, because it takes milliseconds to escape their texts and to parse them. Each has its own message.
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
/** Jobs that one thread has sent, and that share a transaction however long they take. */
const takenTogether = 4
/** How long a transaction takes in further jobs: those that show much must not hold up all others. */
const longestBatchMs = 50
const lookEveryMs = 1000
const longText = 64 * 1024

if (parentPort === null) throw new Error('This module runs as a worker thread only')
const parent: MessagePort = parentPort
const { path, catalogueUrl, busyMs } = workerData as WriterData
/** The jobs that have arrived on each port, and that no transaction has taken yet. */
const ports = new Map<MessagePort, Job[]>()
const closing = new Set<MessagePort>()
let lost: string | undefined
const connection = new SqliteConnection(path, 'write', busyMs)
const [userVersion] = connection.run({ text: 'pragma user_version', values: [] })
const watch = watchFile(path, Number(userVersion?.[0]))
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
  ports.set(port, [])
  port.on('message', (text: string) => {
    receive(port, text)
    commitSome()
  })
  port.on('close', () => ports.delete(port))
}

function receive(port: MessagePort, text: string): void {
  const message = JSON.parse(text) as ToWriter
  if (message === 'close') closing.add(port)
  else if (message === 'damaged') lose('is damaged')
  else ports.get(port)?.push(...message)
}

/** Commits jobs that have arrived together. Those that came too late for it have the next turn. */
function commitSome(): void {
  const senders: MessagePort[] = [] // of each job
  const end = performance.now() + longestBatchMs
  /** A few jobs of each thread, so that none of them waits for a busy one. */
  const more = (): readonly Job[] => {
    const jobs: Job[] = []
    for (const [port, arrived] of ports) {
      if (senders.length >= largestBatch || performance.now() > end) break
      const next: { message: string } | undefined = arrived.length > 0 ? undefined : receiveMessageOnPort(port)
      if (next !== undefined) receive(port, next.message)
      for (const job of arrived.splice(0, takenTogether)) {
        senders.push(port)
        jobs.push(job)
      }
    }
    return jobs
  }
  const jobs = more()
  if (jobs.length > 0) {
    const times = [performance.now()]
    const results = checked(commitTogether(connection, verbs, jobs, more, () => times.push(performance.now())))
    const [begun = 0, ran = begun] = [times[0], times.at(-1)]
    const took = { runMs: ran - begun, commitMs: performance.now() - ran }
    let told = results.length
    for (const [port, own] of Map.groupBy(results, (_, index) => senders[index] ?? parent)) {
      tell(port, { verbs: told, results: own.map(toResult), ...took })
      told = 0
    }
  }
  if (ports.values().some(arrived => arrived.length > 0)) setImmediate(commitSome)
  for (const [port, arrived] of ports) if (closing.has(port) && arrived.length === 0) port.close()
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
  for (const port of [parent, ...ports.keys()]) send(port, { lost })
}

function tell(port: MessagePort, committed: Committed): void {
  const text = JSON.stringify(committed)
  if (text.length < longText) {
    port.postMessage(text)
    return
  }
  const { short = [], long = [] } = Object.groupBy(committed.results, ([, outcome]) =>
    JSON.stringify([outcome]).length < longText ? 'short' : 'long',
  )
  port.postMessage({ ...committed, results: short })
  for (const result of long) port.postMessage({ ...committed, verbs: 0, results: [result] })
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
  for (const port of [...ports.keys(), parent]) port.close()
  connection[Symbol.dispose]()
  watch.close()
}

function send(port: MessagePort, message: FromWriter): void {
  port.postMessage(JSON.stringify(message))
}
