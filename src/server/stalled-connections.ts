import type { Socket } from 'node:net'

export interface StallOptions {
  readonly connections: Iterable<Socket>
  /** How long a connection may have data to send while its client reads none of it. */
  readonly stalledMs: number
  readonly sweepMs: number
  /** Milliseconds, from any starting point. */
  readonly now: () => number
  readonly cut: (connection: Socket) => void
}

/**
 * Closes connections whose clients do not read, so that unsent data does not stay in memory forever. A client that
 * reads, however slowly, keeps its connection. It works for HTTP responses and for WebSocket messages.
 */
export class StalledConnections implements Disposable {
  readonly #options: StallOptions
  readonly #known = new WeakMap<Socket, Progress>()
  readonly #timer: NodeJS.Timeout

  constructor(options: StallOptions) {
    this.#options = options
    this.#timer = setInterval(() => this.#sweep(), options.sweepMs).unref()
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
  }

  #sweep(): void {
    const { connections, stalledMs, now, cut } = this.#options
    const time = now()
    for (const connection of connections) {
      const sent = connection.writableLength === 0 ? undefined : bytesTaken(connection)
      const known = this.#known.get(connection)
      if (sent === undefined) this.#known.delete(connection)
      else if (known?.sent !== sent) this.#known.set(connection, { sent, since: time })
      else if (time - known.since >= stalledMs) cut(connection)
    }
  }
}

interface Progress {
  readonly sent: number
  readonly since: number
}

/** How many bytes the client's side has taken so far. The stream itself counts a response only after its last byte. */
function bytesTaken(connection: Socket & { _handle?: Handle | null }): number | undefined {
  const { _handle: handle } = connection
  return handle ? handle.bytesWritten - handle.writeQueueSize : undefined
}

interface Handle {
  readonly bytesWritten: number
  readonly writeQueueSize: number
}
