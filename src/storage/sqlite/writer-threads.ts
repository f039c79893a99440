import { Worker } from 'node:worker_threads'

/**
 * Starting a thread takes more CPU than everything else at the start of a server. So a thread whose database is closed
 * is kept for the next database that this process opens; the tests open hundreds.
 */
const idle: Worker[] = []
const mostIdle = 4

export function takeThread(): Worker {
  const thread = idle.pop() ?? new Worker(new URL('./writer-thread.ts', import.meta.url))
  thread.ref()
  return thread
}

/** Keeps a thread that has closed its database. It does not keep the process alive. */
export function returnThread(thread: Worker): void {
  for (const event of ['message', 'error', 'exit']) thread.removeAllListeners(event)
  thread.unref()
  if (idle.length < mostIdle) idle.push(thread)
  else void thread.terminate()
}
