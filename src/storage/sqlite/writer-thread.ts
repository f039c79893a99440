import { createRequire, flushCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'
import { MessagePort, parentPort, receiveMessageOnPort } from 'node:worker_threads'
import type { Catalogue, Steps, Verbs } from '../verb.ts'
import { SqliteConnection } from './connection.ts'
import { commitTogether, type Job, pingVerb, type Result } from './group-commit.ts'
import { type SentFailure, sentFailure } from './sent-failure.ts'

/**
 * The writer thread. A durable commit waits for the disk; in this thread, the wait delays no reader. Jobs that other
 * threads send meanwhile share the next commit. Messages are JSON strings, which cross threads faster than objects.
 * A message that is a port is a further thread that sends jobs. After `close` the thread waits for the next database.
 */
export type ToWriter = WriterData | readonly Job[] | 'close'
export type FromWriter = Committed | 'closed'
export interface Committed {
  /** How many verbs the commit had. Only one of the threads that share it is told; the others get 0. */
  readonly verbs: number
  readonly results: readonly SentResult[]
}
export type SentResult = readonly [id: number, outcome: unknown, failure?: SentFailure]

export interface WriterData {
  readonly path: string
  readonly catalogueUrl: string
  readonly busyMs: number
}

const largestBatch = 512

if (parentPort === null) throw new Error('This module runs as a worker thread only')
const parent: MessagePort = parentPort
/** All ports on which jobs arrive. Those of other threads follow when they connect. */
const ports = new Set<MessagePort>()
const load = createRequire(import.meta.url) // unlike import, it needs no turn of the event loop
let open: { readonly connection: SqliteConnection; readonly verbs: Verbs } | undefined

listenTo(parent)

function listenTo(port: MessagePort): void {
  ports.add(port)
  port.on('message', (message: unknown) => {
    if (message instanceof MessagePort) listenTo(message)
    else commitAll(port, message as string)
  })
  port.on('close', () => ports.delete(port))
}

/** Commits the jobs of a message together with all others that have arrived. */
function commitAll(first: MessagePort, text: string): void {
  const senders: MessagePort[] = []
  const closing = new Set<MessagePort>()
  let room = largestBatch
  const take = (port: MessagePort, message: string): readonly Job[] => {
    const jobs = JSON.parse(message) as ToWriter
    if (jobs === 'close') {
      closing.add(port)
      return []
    }
    if ('path' in jobs) {
      openDatabase(jobs)
      return []
    }
    room -= jobs.length
    for (let count = jobs.length; count > 0; count--) senders.push(port)
    return jobs
  }
  /** One message of each thread, so that none of them waits for a busy one. */
  const more = (): readonly Job[] => {
    const jobs: Job[] = []
    for (const port of ports) {
      if (room <= 0) break
      if (closing.has(port)) continue
      const next: unknown = receiveMessageOnPort(port)?.message
      if (next instanceof MessagePort) listenTo(next)
      else if (next !== undefined) jobs.push(...take(port, next as string))
    }
    return jobs
  }
  const jobs = take(first, text)
  if (jobs.length > 0 && open !== undefined) answer(commitTogether(open.connection, open.verbs, jobs, more), senders)
  for (const port of closing) close(port)
}

/** The results are in the order in which the jobs were taken. */
function answer(results: readonly Result[], senders: readonly MessagePort[]): void {
  const shares = new Map<MessagePort, SentResult[]>()
  for (const [index, result] of results.entries()) {
    const port = senders[index] ?? parent
    const share = shares.get(port)
    if (share === undefined) shares.set(port, [sent(result)])
    else share.push(sent(result))
  }
  let verbs = results.length
  for (const [port, share] of shares) {
    send(port, { verbs, results: share })
    verbs = 0
  }
}

function openDatabase({ path, catalogueUrl, busyMs }: WriterData): void {
  const { verbs } = load(fileURLToPath(catalogueUrl)) as Catalogue
  open = { connection: new SqliteConnection(path, 'write', busyMs), verbs: { ...verbs, [pingVerb]: ping } }
  setImmediate(flushCompileCache) // a process that is killed would keep nothing
}

/** Writes a number that the file has already. So it fails when nothing can be written, for example on a full disk. */
function* ping(): Steps<void> {
  const [row] = yield { text: 'pragma user_version', values: [] }
  yield { text: `pragma user_version = ${Number(row?.[0])}`, values: [] }
}

function close(port: MessagePort): void {
  if (port !== parent) {
    port.close()
    return
  }
  for (const other of ports) if (other !== parent) other.close()
  open?.connection[Symbol.dispose]()
  open = undefined
  send(parent, 'closed')
}

function send(port: MessagePort, message: FromWriter): void {
  port.postMessage(JSON.stringify(message))
}

function sent([id, outcome, error]: Result): SentResult {
  return error === undefined ? [id, outcome] : [id, null, sentFailure(error)]
}
