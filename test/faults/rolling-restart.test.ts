import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { programMissing } from '../support/daemon.ts'
import { postgres, type TestDatabase } from '../support/engines.ts'
import { inForm, onlyInFull } from '../support/form.ts'
import { ask } from '../support/http.ts'
import { freePort } from '../support/ports.ts'
import { SocketClient } from '../support/sockets.ts'
import { waitUntil } from '../support/wait.ts'
import { startLoadBalancer } from './haproxy.ts'
import { assertSound, History, summarise } from './history.ts'
import { Instance } from './instance.ts'
import { judgeOn } from './judgement.ts'
import { attempt, runWorkers } from './payers.ts'

const payers = 8
const skip = postgres.skip || (programMissing('haproxy') ?? false)

describe('F13: two instances behind a load balancer that are restarted one after the other, under load', {
  skip,
}, () => {
  it('lose no request at SIGTERM, close sockets with 1001, and exit with code 0 in time', {
    skip: onlyInFull,
  }, async t => {
    await using database = await postgres.create()
    await using cluster = await Cluster.start(database)
    const history = new History()
    const load = new Load(cluster.url, history)
    const endMs: number[] = []
    for (let round = 0; round < inForm(1, 3); round++) {
      for (const which of [0, 1]) {
        await load.more(inForm(50, 1000))
        const signalled = performance.now()
        assert.equal(await cluster.restart(which), 0)
        endMs.push(performance.now() - signalled)
      }
    }
    await load.more(50)
    await load.stop()
    const verdict = await judgeOn(database, history)
    const slowest = Math.max(...endMs)
    t.diagnostic(
      `${endMs.length} restarts: ${summarise(verdict)}; ${load.reads.get(200)} reads; ` +
        `${load.closings.length} sockets closed; the slowest process ended after ${Math.round(slowest)} ms`,
    )
    assertSound(verdict)
    assert.deepEqual([verdict.unknowns, verdict.unavailable], [0, 0])
    assert.deepEqual([...load.reads.keys()], [200])
    assert.ok(load.closings.length >= endMs.length)
    assert.deepEqual([...new Set(load.closings)], [1001])
    if (inForm(false, true)) assert.ok(slowest < 10_000, `${slowest} ms`) // only on an idle machine
  })
})

/** Two instances with fixed ports, and a load balancer. */
class Cluster implements AsyncDisposable {
  readonly url: string
  readonly #database: TestDatabase
  readonly #ports: readonly number[]
  readonly #instances: Instance[]
  readonly #parts: AsyncDisposableStack

  static async start(database: TestDatabase): Promise<Cluster> {
    await using parts = new AsyncDisposableStack()
    const ports = [await freePort(), await freePort()]
    const instances = await Promise.all(ports.map(port => startAt(database, port)))
    for (const instance of instances) parts.use(instance)
    const balancer = parts.use(await startLoadBalancer(ports))
    return new Cluster(database, ports, instances, `http://127.0.0.1:${balancer.port}`, parts.move())
  }

  private constructor(
    database: TestDatabase,
    ports: readonly number[],
    instances: Instance[],
    url: string,
    parts: AsyncDisposableStack,
  ) {
    this.#database = database
    this.#ports = ports
    this.#instances = instances
    this.url = url
    this.#parts = parts
  }

  /** Stops an instance and starts another one in its place. Returns how the first one ended. */
  async restart(which: number): Promise<number | null> {
    this.#instances[which]?.signal('SIGTERM')
    const code = (await this.#instances[which]?.ended()) ?? null
    this.#instances[which] = this.#parts.use(await startAt(this.#database, this.#ports[which] ?? 0))
    return code
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.disposeAsync()
  }
}

function startAt(database: TestDatabase, port: number): Promise<Instance> {
  return Instance.start(database, { PORT: String(port), DRAIN_MS: inForm('1000', '3000') })
}

/** Clients with keep-alive connections, and sockets that are reopened when the server closes them. */
class Load {
  readonly reads = new Map<number | undefined, number>()
  /** The close codes of the sockets; 0 if a socket could not be opened. */
  readonly closings: number[] = []
  readonly #history: History
  readonly #done: Promise<unknown>
  #going = true
  #sockets = new Set<SocketClient>()

  constructor(url: string, history: History) {
    this.#history = history
    const pay = runWorkers(payers, async () => {
      while (this.#going) {
        await attempt(history, url, history.intend())
        const answer = await ask(`${url}/users`).catch(() => undefined)
        this.reads.set(answer?.status, (this.reads.get(answer?.status) ?? 0) + 1)
      }
    })
    this.#done = Promise.all([pay, runWorkers(4, () => this.#listen(url))])
  }

  async #listen(url: string): Promise<void> {
    while (this.#going) {
      using socket = await SocketClient.connect({ url }).catch(() => undefined)
      if (socket === undefined) {
        this.closings.push(0)
        continue
      }
      this.#sockets.add(socket)
      socket.begin('subscription { postAdded { id } }')
      const { code } = await socket.closed
      this.#sockets.delete(socket)
      if (this.#going) this.closings.push(code)
    }
  }

  async more(payments: number): Promise<void> {
    const enough = this.#history.acknowledged + payments
    await waitUntil(() => this.#history.acknowledged >= enough)
  }

  async stop(): Promise<void> {
    this.#going = false
    for (const socket of this.#sockets) socket.websocket.close()
    await this.#done
  }
}
