import { closeSync, openSync } from 'node:fs'
import type { MessagePort, Worker } from 'node:worker_threads'
import { claimDatabase, type DatabaseAddress, type OpenDatabase, type OpenOptions, openClaimed } from './database.ts'
import type { SharedGuard } from './sqlite/guard.ts'
import { closed, returnWriterThread, startWriterThread } from './sqlite/writer-link.ts'
import type { ToWriter } from './sqlite/writer-thread.ts'
import type { Timeouts } from './timeouts.ts'

/** A claimed database, as the main thread tells it to the threads that serve. */
export interface ThreadDatabase {
  readonly address: DatabaseAddress
  readonly threads: number
  /** Only set for SQLite. */
  readonly guard: SharedGuard | undefined
}

/**
 * The main thread's part of a database that several threads of this process open. On SQLite it has the lock of the file
 * and the one writer thread. It must be disposed after all engines of other threads: the writer's connection closes
 * last, because that removes the WAL file.
 */
export class SharedDatabase implements AsyncDisposable {
  readonly database: ThreadDatabase
  readonly #parts: AsyncDisposableStack
  readonly #busyMs: number
  readonly #trouble: (message: string, error: unknown) => void
  #writer: Worker | undefined
  #ended: Promise<unknown> = Promise.resolve()

  static async claim(
    address: DatabaseAddress,
    { operation }: Timeouts,
    threads: number,
    trouble: (message: string, error: unknown) => void,
  ): Promise<SharedDatabase> {
    await using parts = new AsyncDisposableStack()
    const claimed = await claimDatabase(address, parts)
    const descriptor = claimed.kind === 'sqlite' ? openSync(claimed.path, 'r') : undefined
    if (descriptor !== undefined) parts.defer(() => closeSync(descriptor))
    const guard = descriptor === undefined ? undefined : { descriptor, lost: new SharedArrayBuffer(4) }
    return new SharedDatabase({ address: claimed, threads, guard }, operation, trouble, parts.move())
  }

  private constructor(
    database: ThreadDatabase,
    busyMs: number,
    trouble: (message: string, error: unknown) => void,
    parts: AsyncDisposableStack,
  ) {
    this.database = database
    this.#busyMs = busyMs
    this.#trouble = trouble
    this.#parts = parts
  }

  /** Lets a thread send verbs to the writer thread. Starts that thread if it has not started or has ended. */
  connect(port: MessagePort): void {
    this.#writer ??= this.#start()
    this.#writer.postMessage(port, [port])
  }

  #start(): Worker {
    const { address } = this.database
    const path = address.kind === 'sqlite' ? address.path : ''
    const worker = startWriterThread({ path, catalogueUrl: verbsUrl, busyMs: this.#busyMs })
    worker.on('error', error => this.#trouble('The writer thread failed', error))
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#ended = promise
    worker.on('message', text => {
      if (text !== closed) return
      returnWriterThread(worker)
      resolve()
    })
    worker.on('exit', () => {
      if (this.#writer === worker) this.#writer = undefined
      resolve()
    })
    return worker
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#writer?.postMessage(JSON.stringify('close' satisfies ToWriter))
    await this.#ended
    await this.#parts.disposeAsync()
  }
}

/** Only the writer thread and those that serve load the verbs. */
const verbsUrl = import.meta.resolve('./verbs.ts')

/** Opens, in a thread that serves, the database that the main thread has claimed. */
export function openShared(
  { address, threads, guard }: ThreadDatabase,
  options: OpenOptions,
  connect: (port: MessagePort) => void,
): Promise<OpenDatabase> {
  return openClaimed(address, options, guard && { guard, threads, connect })
}
