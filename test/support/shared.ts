import { after, before } from 'node:test'

/** What all tests of a suite use, such as an app: started before the first of them, and ended after the last. */
export function shared<Thing extends AsyncDisposable>(start: () => Promise<Thing>): Thing {
  let thing: Thing
  before(async () => (thing = await start()))
  after(() => thing?.[Symbol.asyncDispose]())
  return new Proxy({} as Thing, {
    get(_, name) {
      const value = Reflect.get(thing, name)
      return typeof value === 'function' ? value.bind(thing) : value
    },
  })
}
