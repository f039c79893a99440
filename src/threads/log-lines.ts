import type { MessagePort } from 'node:worker_threads'

/** The log of a thread. The main thread writes its lines, so that lines of several threads never mix. */
export class LogLines {
  readonly #port: MessagePort
  #lines = ''

  constructor(port: MessagePort) {
    this.#port = port
  }

  write(line: string): void {
    if (this.#lines === '') setTimeout(() => this.flush(), delayMs).unref()
    this.#lines += line
    if (this.#lines.length > mostCharacters) this.flush()
  }

  flush(): void {
    if (this.#lines === '') return
    this.#port.postMessage(this.#lines)
    this.#lines = ''
  }
}

/** A message for each line would cost more than the line. */
const delayMs = 5
const mostCharacters = 32 * 1024
