import { BroadcastChannel } from 'node:worker_threads'
import { inRounds } from './in-rounds.ts'
import { MemoryEventBus } from './memory-event-bus.ts'

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
