import type { MessagePort } from 'node:worker_threads'
import { claimDatabase, type DatabaseAddress, type OpenDatabase, type OpenOptions, openClaimed } from './database.ts'
import { WriterWorker } from './sqlite/writer-worker.ts'
import type { Timeouts } from './timeouts.ts'

/** A claimed database, as the main thread tells it to the threads that serve. */
export interface ThreadDatabase {
  readonly address: DatabaseAddress
  readonly threads: number
}

/**
 * The main thread's part of a database that several threads of this process open. On SQLite it has the lock of the file
 * and the one writer thread. It must be disposed after all engines of other threads.
 */
export class SharedDatabase implements AsyncDisposable {
  readonly database: ThreadDatabase
  readonly #parts: AsyncDisposableStack
  readonly #writer: WriterWorker | undefined

  static async claim(
    address: DatabaseAddress,
    { operation }: Timeouts,
    threads: number,
    trouble: (message: string, error: unknown) => void,
  ): Promise<SharedDatabase> {
    await using parts = new AsyncDisposableStack()
    const claimed = await claimDatabase(address, parts)
    const writer =
      claimed.kind === 'sqlite'
        ? parts.use(new WriterWorker({ path: claimed.path, catalogueUrl: verbsUrl, busyMs: operation }, trouble))
        : undefined
    return new SharedDatabase({ address: claimed, threads }, writer, parts.move())
  }

  private constructor(database: ThreadDatabase, writer: WriterWorker | undefined, parts: AsyncDisposableStack) {
    this.database = database
    this.#writer = writer
    this.#parts = parts
  }

  /** Lets a thread send verbs to the writer thread. */
  connect(port: MessagePort): void {
    this.#writer?.connect(port)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.disposeAsync()
  }
}

/** Only the writer thread and those that serve load the verbs. */
const verbsUrl = import.meta.resolve('./verbs.ts')

/** Opens, in a thread that serves, the database that the main thread has claimed. */
export function openShared(
  { address, threads }: ThreadDatabase,
  options: OpenOptions,
  connect: (port: MessagePort) => void,
): Promise<OpenDatabase> {
  return openClaimed(address, options, address.kind === 'sqlite' ? { threads, connect } : undefined)
}
