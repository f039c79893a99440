import { executionAsyncResource } from 'node:async_hooks'

/**
 * For each `process.nextTick` Node creates an object, seven of them for a small request. V8's fast code for it is bound
 * to the shape of that object, and V8 forgets a shape that no object has. So after a garbage collection between two
 * requests, each of these objects would be created by slow code for as long as the thread runs, which takes a tenth of
 * the CPU of a small request. One object that stays prevents that; this returns it.
 */
export async function keepTickShape(): Promise<object> {
  const { promise, resolve } = Promise.withResolvers<object>()
  process.nextTick(() => resolve(executionAsyncResource()))
  const tick = await promise
  kept.push(tick)
  return tick
}

const kept: object[] = []
