import { parentPort } from 'node:worker_threads'
import type { Row, Value } from '../sql.ts'
import { SqliteConnection, sqliteError } from './connection.ts'
import { type SentFailure, sentFailure } from './sent-failure.ts'
import { lowerPriority } from './thread-priority.ts'

/**
 * The thread of heavy reads. A read in it takes time from no request but its own. It runs one read after the other;
 * each is a snapshot that begins when it starts. After `close` the thread waits for the next database.
 */
export type ToHeavyReader = HeavyReaderData | HeavyRead | 'close'
export type FromHeavyReader = HeavyRows | SentFailure | 'closed'

export interface HeavyReaderData {
  readonly path: string
  readonly busyMs: number
  /** How many connections share the memory for pages. */
  readonly readers: number
}

export interface HeavyRead {
  readonly text: string
  readonly values: readonly Value[]
  /** The time that `now_plus(seconds)` is relative to. */
  readonly now: number
}

export interface HeavyRows {
  readonly rows: readonly Row[]
  /** How many milliseconds the read took. */
  readonly ms: number
}

if (parentPort === null) throw new Error('This module runs as a worker thread only')
const port = parentPort
let connection: SqliteConnection | undefined
lowerPriority() // many wait for the threads that serve, one waits for this read

port.on('message', (message: ToHeavyReader) => {
  if (message === 'close') {
    connection?.[Symbol.dispose]()
    connection = undefined
    send('closed')
  } else if ('path' in message) {
    connection = new SqliteConnection(message.path, 'read', message.busyMs, message.readers)
  } else if (connection !== undefined) {
    send(answerTo(message, connection))
  }
})

function answerTo({ now, ...statement }: HeavyRead, connection: SqliteConnection): HeavyRows | SentFailure {
  const began = performance.now()
  try {
    connection.setTime(now)
    return { rows: connection.run(statement), ms: performance.now() - began }
  } catch (error) {
    return sentFailure(sqliteError(error))
  }
}

function send(message: FromHeavyReader): void {
  port.postMessage(message)
}
