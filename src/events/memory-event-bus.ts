import { BroadcastChannel } from 'node:worker_threads'
import type { EventBus } from '../core/events.ts'
import { inRounds } from './in-rounds.ts'

export class MemoryEventBus implements EventBus {
  readonly #listeners: ((writtenHere: boolean) => void)[] = []

  notify(): void {
    this.tell(true)
  }

  announce(): void {}

  listen(listener: (writtenHere: boolean) => void): void {
    this.#listeners.push(listener)
  }

  protected tell(writtenHere: boolean): void {
    for (const listener of this.#listeners) listener(writtenHere)
  }
}

/** Reaches all threads of this process that have a bus of the same name. Announcements close together become one. */
export class ThreadEventBus extends MemoryEventBus {
  override readonly announce: () => void

  constructor(name: string) {
    super()
    const channel = new BroadcastChannel(name)
    channel.onmessage = () => this.tell(false)
    channel.unref()
    this.announce = inRounds(async () => channel.postMessage(null), pauseMs)
  }
}

const pauseMs = 2
