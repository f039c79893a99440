import { MessageChannel, type MessagePort, type Worker } from 'node:worker_threads'
import { KeptThreads } from './kept-threads.ts'
import type { FromWriter, ToWriter, WriterData } from './writer-thread.ts'

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

const threads = new KeptThreads(new URL('./writer-thread.ts', import.meta.url), 'writer')

export function startWriterThread(data: WriterData): Worker {
  const worker = threads.start()
  worker.postMessage(JSON.stringify(data satisfies ToWriter))
  return worker
}

/** Keeps a thread that has closed its database. */
export function returnWriterThread(worker: Worker): void {
  threads.giveBack(worker)
}

/** The last message of a thread about a database. */
export const closed = JSON.stringify('closed' satisfies FromWriter)

/** A link to a writer thread of its own. */
export function linkToOwn(data: WriterData): WriterLink {
  const worker = startWriterThread(data)
  return {
    post: text => worker.postMessage(text),
    listen({ onMessage, onError, onEnd }) {
      worker.on('message', (text: unknown) => {
        if (text === closed) {
          returnWriterThread(worker)
          onEnd()
        } else if (typeof text === 'string') onMessage(text) // under --watch, Node also sends the names of the thread's files
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
