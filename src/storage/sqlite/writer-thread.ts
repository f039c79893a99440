import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { parentPort, receiveMessageOnPort } from 'node:worker_threads'
import type { ErrorCode } from '../../core/errors.ts'
import type { Catalogue, Steps, Verbs } from '../verb.ts'
import { SqliteConnection, sqliteCode } from './connection.ts'
import { commitTogether, type Job, pingVerb, type Result } from './group-commit.ts'

/**
 * The writer thread. A durable commit waits for the disk; in this thread, the wait delays no reader. Jobs that the main
 * thread sends meanwhile share the next commit. Messages are JSON strings, which cross threads faster than objects.
 * After `close` the thread waits for the next database.
 */
export type ToWriter = WriterData | readonly Job[] | 'close'
export type FromWriter = readonly SentResult[] | 'closed'
export type SentResult = readonly [id: number, outcome: unknown, failure?: SentFailure]

export interface WriterData {
  readonly path: string
  /** The module that exports the verbs. */
  readonly catalogueUrl: string
  readonly busyMs: number
}

interface SentFailure {
  readonly code: ErrorCode
  readonly message: string
  readonly detail: string
  readonly at: number | undefined
  readonly sqliteCode: number | undefined
}

const largestBatch = 512

if (parentPort === null) throw new Error('This module runs as a worker thread only')
const port = parentPort
const load = createRequire(import.meta.url) // unlike import, it needs no turn of the event loop
let open: { readonly connection: SqliteConnection; readonly verbs: Verbs } | undefined

port.on('message', (first: string) => {
  let closing = false
  let room = largestBatch
  const jobsOf = (text: string | undefined): readonly Job[] => {
    if (text === undefined) return []
    const message = JSON.parse(text) as ToWriter
    if (message === 'close') {
      closing = true
      return []
    }
    if ('path' in message) {
      openDatabase(message)
      return []
    }
    room -= message.length
    return message
  }
  const jobs = jobsOf(first)
  if (jobs.length > 0 && open !== undefined) {
    const more = () => (room > 0 && !closing ? jobsOf(receiveMessageOnPort(port)?.message) : [])
    send(commitTogether(open.connection, open.verbs, jobs, more).map(sent))
  }
  if (closing) close()
})

function openDatabase({ path, catalogueUrl, busyMs }: WriterData): void {
  const { verbs } = load(fileURLToPath(catalogueUrl)) as Catalogue
  open = { connection: new SqliteConnection(path, 'write', busyMs), verbs: { ...verbs, [pingVerb]: ping } }
}

function close(): void {
  open?.connection[Symbol.dispose]()
  open = undefined
  send('closed')
}

function send(message: FromWriter): void {
  port.postMessage(JSON.stringify(message))
}

/** Writes a number that the file has already. So it fails when nothing can be written, for example on a full disk. */
function* ping(): Steps<void> {
  const [row] = yield { text: 'pragma user_version', values: [] }
  yield { text: `pragma user_version = ${Number(row?.[0])}`, values: [] }
}

// The class and the code of an error are lost on the way to another thread, so its parts are sent.
function sent([id, outcome, error]: Result): SentResult {
  if (error === undefined) return [id, outcome]
  const { code, message, cause, at } = error
  const detail = cause instanceof Error ? (cause.stack ?? cause.message) : String(cause)
  return [id, null, { code, message, detail, at, sqliteCode: sqliteCode(cause) }]
}
