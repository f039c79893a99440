import { BroadcastChannel } from 'node:worker_threads'
import type { EventBus } from '../core/events.ts'
import { MemoryEventBus } from './event-bus.ts'

/** Notifies all threads of this process that have a bus of the same name. Notifications close together become one. */
export class ThreadEventBus implements EventBus, Disposable {
  readonly #local = new MemoryEventBus()
  readonly #channel: BroadcastChannel
  #pause: NodeJS.Timeout | undefined
  #sendAgain = false

  constructor(name: string) {
    this.#channel = new BroadcastChannel(name)
    this.#channel.onmessage = () => this.#local.notify()
    this.#channel.unref()
  }

  notify(): void {
    this.#local.notify()
    if (this.#pause === undefined) this.#send()
    else this.#sendAgain = true
  }

  listen(listener: () => void): void {
    this.#local.listen(listener)
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
