import { BroadcastChannel } from 'node:worker_threads'
import { MemoryEventBus } from './memory-event-bus.ts'

/** Reaches all threads of this process that have a bus of the same name. Announcements close together become one. */
export class ThreadEventBus extends MemoryEventBus implements Disposable {
  readonly #channel: BroadcastChannel
  #pause: NodeJS.Timeout | undefined
  #sendAgain = false

  constructor(name: string) {
    super()
    this.#channel = new BroadcastChannel(name)
    this.#channel.onmessage = () => this.tell(false)
    this.#channel.unref()
  }

  override announce(): void {
    if (this.#pause === undefined) this.#send()
    else this.#sendAgain = true
  }

  #send(): void {
    this.#sendAgain = false
    this.#channel.postMessage(null)
    this.#pause = setTimeout(() => {
      this.#pause = undefined
      if (this.#sendAgain) this.#send()
    }, pauseMs).unref()
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#pause)
    if (this.#sendAgain) this.#channel.postMessage(null)
    this.#channel.close()
  }
}

const pauseMs = 2
