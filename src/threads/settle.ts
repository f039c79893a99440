import { Session } from 'node:inspector/promises'
import { flushCompileCache } from 'node:module'

/**
 * Called in each thread after its start. Keeps the compiled code for the next start, also if this process will be killed.
 * Then it collects the garbage of the start, about 10 MB: V8 keeps it for as long as the thread has little to do.
 */
export async function settle(): Promise<void> {
  flushCompileCache()
  const session = new Session()
  session.connect()
  await session.post('HeapProfiler.collectGarbage')
  session.disconnect()
}
