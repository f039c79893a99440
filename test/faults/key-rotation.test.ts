import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import type { JWK } from 'jose'
import { generateKeySet } from '../../src/security/keys.ts'
import { postgres } from '../support/engines.ts'
import { temporaryFolder } from '../support/folder.ts'
import { inForm, onlyInFull } from '../support/form.ts'
import { ask } from '../support/http.ts'
import { askAs, register, tokenOf } from '../support/logins.ts'
import { waitUntil } from '../support/wait.ts'
import { type Instance, startTwo } from './instance.ts'
import { runWorkers } from './payers.ts'

describe('A key rotation by SIGHUP on two instances, while clients log in and read on both', {
  skip: postgres.skip,
}, () => {
  let parts: AsyncDisposableStack
  let path: string
  let instances: [Instance, Instance]
  let old: JWK
  let clients: Clients
  beforeEach(async () => {
    parts = new AsyncDisposableStack()
    path = join(parts.use(temporaryFolder()).path, 'keys.json')
    old = await newKey()
    write(path, [old])
    const database = parts.use(await postgres.create())
    instances = await startTwo(database, parts, { TOKEN_KEYS: path, LOGIN_LIMIT_MAX: '0' })
    await register(instances[0].url)
    clients = new Clients(instances)
  })
  afterEach(async () => {
    await clients.stop()
    await parts.disposeAsync()
  })

  it('refuses no token if the new key is added last everywhere, then put first, then the old one is removed', {
    skip: onlyInFull,
  }, async t => {
    for (let round = 0; round < inForm(1, 5); round++) {
      const fresh = await newKey()
      for (const keys of [[old, fresh], [fresh, old], [fresh]]) {
        // Before a key is removed, all tokens that it signed must have expired. Here, clients log in again.
        await clients.renewal()
        write(path, keys)
        for (const instance of instances) await reload(instance, keys)
      }
      old = fresh
    }
    await clients.renewal()
    await clients.stop()
    t.diagnostic(`${clients.logins} logins, ${clients.statuses.get(200)} reads`)
    assert.deepEqual([...clients.statuses.keys()], [200])
  })
})

/** Each client logs in on one instance, reads on both with the token, and then starts again with the other instance. */
class Clients {
  readonly statuses = new Map<number, number>()
  logins = 0
  #going = true
  readonly #turns = [0, 0, 0]
  readonly #done: Promise<void>

  constructor(instances: readonly [Instance, Instance]) {
    this.#done = runWorkers(this.#turns.length, async worker => {
      for (let turn = worker; this.#going; turn++) {
        const token = await tokenOf(instances[turn % 2 === 0 ? 0 : 1].url)
        this.logins++
        for (let reads = 0; reads < 10; reads++) {
          const { status } = await askAs(token, `${instances[reads % 2 === 0 ? 0 : 1].url}/users/me`)
          this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1)
        }
        this.#turns[worker] = (this.#turns[worker] ?? 0) + 1
      }
    })
  }

  /** Waits until no client has a token from before. A login may be in progress now, so the second login counts. */
  async renewal(): Promise<void> {
    const enough = this.#turns.map(turn => turn + 2)
    await waitUntil(() => this.#turns.every((turn, worker) => turn >= (enough[worker] ?? 0)))
  }

  async stop(): Promise<void> {
    this.#going = false
    await this.#done
  }
}

async function newKey(): Promise<JWK> {
  return JSON.parse(await generateKeySet()).keys[0]
}

function write(path: string, keys: readonly JWK[]): void {
  writeFileSync(path, JSON.stringify({ keys }))
}

async function reload(instance: Instance, keys: readonly JWK[]): Promise<void> {
  instance.signal('SIGHUP')
  const expected = keys.map(({ kid }) => kid).join()
  await waitUntil(async () => {
    const { body } = await ask(`${instance.url}/.well-known/jwks.json`)
    return (
      JSON.parse(body)
        .keys.map(({ kid }: JWK) => kid)
        .join() === expected
    )
  })
}
