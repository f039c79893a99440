import { systemRandomness } from '../../src/app.ts'
import type { Role } from '../../src/core/actor.ts'
import { readKeys } from '../../src/security/keys.ts'
import { JwtSigner } from '../../src/security/tokens.ts'
import type { Engine } from '../../src/storage/engine.ts'
import { sql } from '../../src/storage/sql.ts'
import { catalogue, type verbs } from '../../src/storage/verbs.ts'
import { setDatabaseClockAhead } from '../faults/database-clock.ts'
import { assertLedger } from '../rest/ledger.ts'
import { startTestApp } from '../support/app.ts'
import { TestClock } from '../support/clock.ts'
import type { EngineKind, TestDatabase } from '../support/engines.ts'
import { ask } from '../support/http.ts'
import { tokenKeys } from '../support/keys.ts'
import { createUser } from '../support/rest.ts'
import type { Answer, Caller, Owner, Policy } from './model.ts'

type App = { readonly url: string } & AsyncDisposable
type Prepare = (database: TestDatabase) => Promise<void>

/** The real service on its own database, with a clock that the test moves: that of the app, or of PostgreSQL. */
export class Service implements AsyncDisposable {
  readonly policy: Policy
  readonly database: TestDatabase
  /** A second connection, to read the tables directly. */
  #engine: Engine<typeof verbs>
  readonly #clock: TestClock
  readonly #env: Readonly<Record<string, string>>
  #app: App
  /** Seconds that PostgreSQL's clock is ahead. */
  #ahead = 0

  /** `prepare` changes the new database before the start. */
  static async start(kind: EngineKind, policy: Policy, prepare: Prepare = async () => {}): Promise<Service> {
    const database = await kind.create()
    await prepare(database)
    const clock = new TestClock()
    const env = {
      DATABASE_URL: kind.kind === 'sqlite' ? `sqlite:${database.location}` : database.location,
      TOKEN_KEYS: tokenKeys,
      ACCESS_POLICY: policy,
    }
    return new Service(policy, database, clock, env, await startTestApp(env, { clock }))
  }

  private constructor(
    policy: Policy,
    database: TestDatabase,
    clock: TestClock,
    env: Readonly<Record<string, string>>,
    app: App,
  ) {
    this.policy = policy
    this.database = database
    this.#engine = database.open(catalogue)
    this.#clock = clock
    this.#env = env
    this.#app = app
  }

  get url(): string {
    return this.#app.url
  }

  /** The current time, if the test controls the clock. */
  get instant(): string | undefined {
    return this.database.kind === 'sqlite' ? new Date(this.#clock.now()).toISOString() : undefined
  }

  /** For direct access to the database. */
  get engine(): Engine<typeof verbs> {
    return this.#engine
  }

  async restart(): Promise<void> {
    await this.#app[Symbol.asyncDispose]()
    await this.#engine[Symbol.asyncDispose]() // a server claims the file when it starts, and then other users of the file lose it
    this.#app = await startTestApp(this.#env, { clock: this.#clock })
    this.#engine = this.database.open(catalogue)
  }

  async pass(seconds: number): Promise<void> {
    this.#ahead += seconds
    if (this.database.kind === 'sqlite') this.#clock.pass(seconds * 1000)
    else await setDatabaseClockAhead(this.database, this.#ahead)
  }

  /** New users with tokens, so that runs are independent. */
  async enter(): Promise<Session> {
    const [ann, bob, admin] = [await createUser(this), await createUser(this), await createUser(this)]
    await this.engine.write('setRole', { id: admin.id }, 'admin', systemRandomness.id())
    const keys = await readKeys(tokenKeys)
    const ttlSeconds = 10 * 365 * 86_400
    const signer = new JwtSigner({ keys, ttlSeconds, clock: this.#clock, randomness: systemRandomness })
    // Tokens are signed directly, because hashing passwords would take longer than a whole run.
    const tokenOf = async (id: number) => {
      const [row] = await this.engine.read(sql`select role, token_mark from users where id = ${id}`)
      const loggedInAt = Math.floor(this.#clock.now() / 1000)
      return signer.issue(
        { id, role: row?.[0] as Role, tokenVersion: String(row?.[1]) },
        { loggedInAt, endsAt: loggedInAt + ttlSeconds },
      )
    }
    const tokens = { ann: await tokenOf(ann.id), bob: await tokenOf(bob.id), admin: await tokenOf(admin.id) }
    return new Session(this, { ann: ann.id, bob: bob.id }, tokens)
  }

  async count(): Promise<{ orders: number; payments: number }> {
    const [row] = await this.engine.read(sql`select (select count(*) from orders), (select count(*) from payments)`)
    return { orders: Number(row?.[0]), payments: Number(row?.[1]) }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#app[Symbol.asyncDispose]()
    await this.engine[Symbol.asyncDispose]()
    await this.database[Symbol.asyncDispose]()
  }
}

/** One service for all runs. It is replaced if a run leaves inconsistent tables, so that the next run does not fail. */
export class Stage implements AsyncDisposable {
  readonly #start: () => Promise<Service>
  #service: Service | undefined

  constructor(kind: EngineKind, policy: Policy, prepare?: Prepare) {
    this.#start = () => Service.start(kind, policy, prepare)
  }

  async run(work: (service: Service) => Promise<void>): Promise<void> {
    this.#service ??= await this.#start()
    try {
      await work(this.#service)
    } catch (error) {
      await assertLedger(this.#service.engine).catch(() => this[Symbol.asyncDispose]())
      throw error
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const service = this.#service
    this.#service = undefined
    await service?.[Symbol.asyncDispose]()
  }
}

interface Said {
  readonly key?: string | undefined
  readonly body?: unknown
}

/** The service as the users of one run see it. */
export class Session {
  readonly service: Service
  readonly userIds: Readonly<Record<Owner, number>>
  /** Anonymous callers share their keys with all runs, so each run has its own prefix. */
  readonly prefix = `run-${++sessions}-`
  readonly #tokens: Readonly<Record<Exclude<Caller, 'anonymous'>, string>>

  constructor(
    service: Service,
    userIds: Session['userIds'],
    tokens: Readonly<Record<Exclude<Caller, 'anonymous'>, string>>,
  ) {
    this.service = service
    this.userIds = userIds
    this.#tokens = tokens
  }

  async send(line: string, caller: Caller, { key, body }: Said = {}): Promise<Answer> {
    const [method = '', path = ''] = line.split(' ')
    const headers = {
      ...(caller !== 'anonymous' && { authorization: `Bearer ${this.#tokens[caller]}` }),
      ...(key !== undefined && { 'idempotency-key': key }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
    }
    const text = body === undefined ? {} : { body: JSON.stringify(body) }
    const response = await ask(this.service.url + path, { method, headers, ...text })
    const location = response.headers.get('location')
    const links = response.headers.get('link')
    return {
      status: response.status,
      body: response.body === '' ? null : JSON.parse(response.body),
      ...(location !== undefined && { location }),
      ...(links !== undefined && { links: linksIn(links) }),
      ...(response.headers.get('idempotent-replayed') === 'true' && { replayed: true }),
    }
  }
}

let sessions = 0

function linksIn(header: string): Record<string, string> {
  return Object.fromEntries([...header.matchAll(/<([^>]*)>; rel="([^"]*)"/g)].map(([, target, rel]) => [rel, target]))
}
