import { executionAsyncResource } from 'node:async_hooks'
import { transcode } from 'node:buffer'
import { Session } from 'node:inspector/promises'
import { flushCompileCache } from 'node:module'
import { setFlagsFromString } from 'node:v8'

// What V8 needs to be told, so that a server that runs for long stays as fast and as small as after its start.

/** Called once for the process, before it serves. `requestsWait`: whether requests wait for a database outside it. */
export function prepareProcess({ requestsWait }: { readonly requestsWait: boolean }): void {
  // By default V8 learns which places in the code create objects that live long, and puts further objects of such a
  // place into the old space at once. Lists of listeners live long if they belong to connections. Then those of requests
  // come into the old space too, and each keeps its whole request in memory until the next full garbage collection.
  setFlagsFromString('--no-allocation-site-pretenuring')
  // By default the old space may grow to four times what lives in it before V8 collects it, and V8 keeps the pages that
  // are then free. Under load without pauses the process has 280 MB then, and 200 MB with this. But requests that wait get
  // into the old space: with a thousand of them, more collections take a fifth more CPU.
  if (!requestsWait) setFlagsFromString('--heap-growing-percent=50')
  // By default several threads collect new objects together. They take 3 % more CPU, and the cores from each other.
  setFlagsFromString('--no-parallel-scavenge')
}

/**
 * Called in each thread that serves. For each `process.nextTick` Node creates an object, seven of them for a small
 * request. V8's fast code for it is bound to the shape of that object, and V8 forgets a shape that no object has. So after
 * a garbage collection between two requests, each of these objects would be created by slow code for as long as the
 * thread runs, which takes a tenth of the CPU of a small request. One object that stays prevents that; this returns it.
 */
export async function keepTickShape(): Promise<object> {
  const { promise, resolve } = Promise.withResolvers<object>()
  process.nextTick(() => resolve(executionAsyncResource()))
  const tick = await promise
  kept.push(tick)
  return tick
}

const kept: object[] = []

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

/**
 * Frees the memory of bytes that have their own and that nobody reads any more. V8 counts 4 MB of bytes as so much
 * garbage that it would collect everything, which takes longer than to write them.
 */
export function release({ buffer }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer) buffer.transfer(0)
}

/** The bytes of a long text, which `Buffer.from` writes in three times as long if it is not in Latin script. */
export function encode(text: string): Buffer {
  const wide = Buffer.allocUnsafeSlow(2 * text.length)
  wide.write(text, 'ucs2')
  try {
    return transcode(wide, 'ucs2', 'utf8')
  } catch {
    return Buffer.from(text) // it has half of a surrogate pair
  } finally {
    release(wide)
  }
}

/**
 * For a thread. By default new objects may take 200 MB in each, and two that serve held 617 MB after the load of a
 * benchmark. The main thread is bounded by `--max-semi-space-size` on the command line: V8 reads it before any code runs.
 */
export const threadMemory = { maxYoungGenerationSizeMb: 24 }

/** The writer thread creates fewer objects. With as much as the others it held 4 MB more after a benchmark. */
export const writerMemory = { maxYoungGenerationSizeMb: 12 }
