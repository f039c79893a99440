import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads'
import type { WriterData } from './writer-thread.ts'

/** A connection to the writer thread. */
export interface WriterLink {
  post(text: string): void
  listen(listeners: WriterListeners): void
}

export interface WriterListeners {
  readonly onMessage: (text: string) => void
  readonly onError: (error: unknown) => void
  /** Called once. No message follows. */
  readonly onEnd: () => void
}

export function startWriterThread(workerData: WriterData): Worker {
  return new Worker(new URL('./writer-thread.ts', import.meta.url), { workerData })
}

/** A link to a writer thread of its own, which ends with the link. */
export function linkToOwn(workerData: WriterData): WriterLink {
  const worker = startWriterThread(workerData)
  return {
    post: text => worker.postMessage(text),
    listen({ onMessage, onError, onEnd }) {
      worker.on('message', (text: unknown) => {
        if (typeof text === 'string') onMessage(text) // under --watch, Node also sends the names of the thread's files
      })
      worker.on('error', onError)
      worker.on('exit', onEnd)
    },
  }
}

/** A link to a writer thread that other threads use too. `connect` passes the port on to it. */
export function linkToShared(connect: (port: MessagePort) => void): WriterLink {
  const { port1, port2 } = new MessageChannel()
  connect(port2)
  return {
    post: text => port1.postMessage(text),
    listen({ onMessage, onEnd }) {
      port1.on('message', onMessage)
      port1.on('close', onEnd)
    },
  }
}
