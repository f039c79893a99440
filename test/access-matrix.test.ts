import assert from 'node:assert/strict'
import { describe, it, test } from 'node:test'
import { accessTable, type Operation, type Policy } from '../src/core/access.ts'
import type { DueReset } from '../src/core/store.ts'
import type { User } from '../src/core/users/user.ts'
import { profileOf } from '../src/core/users/user.ts'
import { prefixes } from '../src/rest/serve.ts'
import { secrets } from '../src/security/secrets.ts'
import { sql } from '../src/storage/sql.ts'
import { registeredRoutes, startTestAppOn, type TestApp } from './support/app.ts'
import { TestClock } from './support/clock.ts'
import { engineKinds } from './support/engines.ts'
import { onlyInFull } from './support/form.ts'
import { read } from './support/graphql.ts'
import { cheapPasswords } from './support/passwords.ts'
import { assertRefusal } from './support/refusal.ts'
import { bodyOf, logIn, newKey, paymentLinkOf, send, sendText, somebody, someItems } from './support/rest.ts'
import { shared } from './support/shared.ts'
import { tablesOf } from './support/tables.ts'

/**
 * `yes`: done, answered with the success status. `no-op`: answered with 204, and nothing changes. Otherwise the status
 * of the refusal.
 */
type Verdict = 'yes' | 'no-op' | 401 | 403 | 404

/** A caller without a token, the owner, another user, an admin. */
type Verdicts = readonly [anonymous: Verdict, owner: Verdict, otherUser: Verdict, admin: Verdict]

const everyone: Verdicts = ['yes', 'yes', 'yes', 'yes']
const members: Verdicts = [401, 'yes', 'yes', 'yes']
const owners: Verdicts = [401, 'yes', 403, 'yes']
const admins: Verdicts = [401, 403, 403, 'yes']
/** Others do not even learn that it exists. */
const hidden: Verdicts = [401, 'yes', 404, 'yes']
const hiddenDeletion: Verdicts = [401, 'yes', 'no-op', 'yes']

/** A request for an operation of the access table, and who may do it under each policy. */
interface Attempt extends Readonly<Record<Policy, Verdicts>> {
  /** The path of the route. `:id` is replaced by the id, in the path and in the GraphQL operation. */
  readonly route: string
  /** The GraphQL operation, if the route is `/graphql`. */
  readonly query?: string
  /**
   * The kind of the target: by default a user; else an order, payment or post of that user, a comment on a post of
   * another user, or the secret of a mail to that user.
   */
  readonly about?: 'order' | 'payment' | 'post' | 'comment' | 'secret'
  readonly body?: () => object
  /**
   * This operation revokes the caller's token. The other callers need theirs later, so every caller with a valid token
   * is the owner here.
   */
  readonly revokes?: true
  /** The answer to a caller with access. */
  readonly success: number
}

function http(route: string, open: Verdicts, enforced: Verdicts, more: Partial<Attempt> = {}): Attempt {
  return { route, open, enforced, success: 200, ...more }
}

function graphql(query: string, open: Verdicts, enforced: Verdicts, about?: 'post' | 'comment'): Attempt {
  return http('POST /graphql', open, enforced, { query, ...(about && { about }) })
}

const newPassword = () => ({ password: 'another password' })
const addComment = 'mutation { addComment(postId: ":id", text: "H") { author { email } } }'
const reset = { body: newPassword, success: 204 }
const order = () => ({ items: someItems() })
const nobody = () => ({ email: 'nobody@example.com' })

/**
 * The permissions that the service promises, written by hand and not derived from the code. An intended change of
 * `core/access.ts` must be made here too.
 */
const attempts: Readonly<Record<Operation, Attempt>> = {
  'list users': http('GET /users', everyone, admins),
  'read a user': http('GET /users/:id', everyone, owners),
  'read oneself': http('GET /users/me', members, members),
  'create a user': http('POST /users', everyone, everyone, { body: somebody, success: 201 }),
  'replace a user': http('PUT /users/:id', everyone, owners, { body: somebody }),
  'change a user': http('PATCH /users/:id', everyone, owners, { body: () => ({ age: 99 }) }),
  'change an existing password': http('PATCH /users/:id', owners, owners, { body: newPassword }),
  'delete a user': http('DELETE /users/:id', everyone, owners, { success: 204 }),
  'read a role': http('GET /users/:id/role', admins, admins),
  'change a role': http('PUT /users/:id/role', admins, admins, { body: () => ({ role: 'admin' }) }),
  'revoke own tokens': http('DELETE /tokens', members, members, { revokes: true, success: 204 }),
  'request a password reset': http('POST /password-resets', everyone, everyone, { body: nobody, success: 202 }),
  'reset a password': http('PUT /password-resets/:secret', everyone, everyone, { about: 'secret', ...reset }),
  'list orders': http('GET /users/:id/orders', everyone, owners),
  'list all orders': http('GET /orders', everyone, admins),
  'create an order': http('POST /users/:id/orders', everyone, owners, { body: order, success: 201 }),
  'read an order': http('GET /orders/:id', everyone, hidden, { about: 'order' }),
  'pay an order': http('POST /orders/:id/payment', everyone, hidden, { about: 'order' }),
  'cancel an order': http('DELETE /orders/:id', everyone, hiddenDeletion, { about: 'order', success: 204 }),
  'make a payment': http('POST /payments', everyone, members, { body: () => ({ amount: 1 }), success: 201 }),
  'list payments': http('GET /payments', everyone, members),
  'read a payment': http('GET /payments/:id', everyone, hidden, { about: 'payment' }),
  'read posts': graphql('{ posts { title author { name } } users { name } }', everyone, everyone),
  "read others' e-mails": graphql('{ users { email } }', everyone, admins),
  'create a post': graphql('mutation { createPost(title: "T", content: "C") { author { email } } }', members, members),
  'update a post': graphql('mutation { updatePost(id: ":id", title: "O") { title } }', owners, owners, 'post'),
  'delete a post': graphql('mutation { deletePost(id: ":id") }', owners, owners, 'post'),
  'like a post': graphql('mutation { likePost(id: ":id") { likes } }', everyone, members, 'post'),
  'add a comment': graphql(addComment, members, members, 'post'),
  'update a comment': graphql('mutation { updateComment(id: ":id", text: "H") { id } }', owners, owners, 'comment'),
  'delete a comment': graphql('mutation { deleteComment(id: ":id") }', owners, owners, 'comment'),
}

/** More requests that need the same permission as 'read an order'. */
const alsoReadAnOrder = ['GET /orders/:id/items', 'GET /orders/:id/tracking']

/** Routes that ignore tokens, so they have no operation in the table. */
const ignoreTokens = [
  /^POST \/tokens$/,
  /^GET \/health\/(live|ready)$/,
  /^GET \/metrics$/,
  /^GET \/\.well-known\/jwks\.json$/,
  /^GET \/(api\/?)?$/,
  /^GET \/(openapi\.json|client\.js|pages\.css|(header|reading|try)\.js|favicon\.ico|icon\.svg)$/,
  /^GET \/docs(\/.*)?$/,
  /^GET \/graphiql\/.*$/,
  /^GET \/console(\/.*)?$/,
]

const validCallers = ['anonymous', 'owner', 'other user', 'admin'] as const
const invalidCallers = ['deleted user', 'expired token', 'token from before a password change'] as const
const callers = [...validCallers, ...invalidCallers]
type Caller = (typeof callers)[number]

const operations = Object.keys(attempts) as Operation[]
const password = 'right password'

function verdictOn(caller: Caller, operation: Operation, policy: Policy): Verdict {
  return attempts[operation][policy][callers.indexOf(caller)] ?? 401
}

function statusOf(verdict: Verdict, success = 200): number {
  return verdict === 'yes' ? success : verdict === 'no-op' ? 204 : verdict
}

/** A running app with users, and a way to create more users without hashing a password for each. */
class Stage implements AsyncDisposable {
  readonly app: TestApp
  readonly #hash: string
  #tables: readonly string[] = []
  /** The tokens of all callers except the owner, who is a new user each time. */
  readonly #tokens = new Map<Caller | 'author', string>()

  static async set(kind: (typeof engineKinds)[number], policy: Policy): Promise<Stage> {
    const clock = new TestClock()
    const env = { ACCESS_POLICY: policy, LOGIN_LIMIT_MAX: '0', RATE_LIMIT_MAX: '0', TOKEN_TTL_SECONDS: '60' }
    const stage = new Stage(await startTestAppOn(kind, env, { clock }), await cheapPasswords().hash(password))
    // The app deletes requests for mails to nobody at any time.
    stage.#tables = (await tablesOf(stage.app.engine)).filter(name => name !== 'password_resets')
    await stage.#cast(clock)
    return stage
  }

  private constructor(app: TestApp, hash: string) {
    this.app = app
    this.#hash = hash
  }

  async #cast(clock: TestClock): Promise<void> {
    const cast = async (caller: Caller | 'author') => {
      const user = await this.person()
      const token = await this.tokenOf(user)
      this.#tokens.set(caller, token)
      return { user, token }
    }
    const late = await cast('expired token')
    // The token is used while it is valid, to check that the cache of signatures does not accept it after its expiry.
    assert.equal((await this.request('GET /users/me', late.user, undefined, late.token)).status, 200)
    clock.pass(60_000)
    for (const caller of ['other user', 'author'] as const) await cast(caller)
    const admin = await this.person()
    await this.app.engine.write('setRole', { id: admin.id }, 'admin', 'a new version')
    this.#tokens.set('admin', await this.tokenOf(admin))
    const gone = await cast('deleted user')
    await this.request('DELETE /users/:id', gone.user, undefined, this.#tokens.get('admin'))
    const changed = await cast('token from before a password change')
    await this.request('PATCH /users/:id', changed.user, newPassword(), changed.token)
  }

  /** A user with or without a password. */
  async person(secret: { hash: string } | null = { hash: this.#hash }): Promise<User> {
    const tokenVersion = `version ${Math.random()}`
    const values = { ...somebody(), ...profileOf(() => null), age: 30, password: secret, tokenVersion }
    const user = await this.app.engine.write('createUser', values)
    return typeof user === 'string' ? assert.fail(user) : user
  }

  tokenOf({ email }: User): Promise<string> {
    return logIn(this.app, email, password)
  }

  async tokenAs(caller: Caller, owner: User): Promise<string | undefined> {
    return caller === 'owner' ? await this.tokenOf(owner) : this.#tokens.get(caller)
  }

  request(line: string, { id }: { readonly id: number | string }, body?: object, token?: string) {
    const headers = line.endsWith('/payments') ? { 'idempotency-key': newKey() } : {}
    const text = body && JSON.stringify(body)
    return sendText(this.app, line.replace(/:(id|secret)/, String(id)), text, token, headers)
  }

  /** The target of the operation: the user itself, or what the user has created. */
  async subject(about: Attempt['about'], owner: User): Promise<{ readonly id: number | string }> {
    if (about === undefined) return owner
    if (about === 'secret') return { id: await this.#secret(owner) }
    const token = await this.tokenOf(owner)
    if (about === 'order') return bodyOf(await this.request('POST /users/:id/orders', owner, order(), token), 201)
    if (about === 'payment') return bodyOf(await this.request('POST /payments', owner, { amount: 1 }, token), 201)
    // The comment is on a post of another user, who may delete the comment too.
    const author = about === 'post' ? token : this.#tokens.get('author')
    const create = async (mutation: string, token?: string) =>
      (await read<{ it: { id: string } }>(this.app, `mutation { it: ${mutation} { id } }`, { token })).it
    const post = await create('createPost(title: "T", content: "C")', author)
    return about === 'post' ? post : create(`addComment(postId: ${post.id}, text: "Hi")`, token)
  }

  /** Others may have asked for mails, and the app sends them, too. */
  async #secret({ email }: User): Promise<string> {
    const { secret, hash } = secrets.make()
    for (let due: readonly DueReset[] = []; due[0]?.email !== email; ) {
      await this.app.engine.write('requestReset', email)
      due = await this.app.engine.write('takeResets', [hash])
    }
    return secret
  }

  /** The data of a user, and the number of rows of each table. */
  async stateOf({ id }: User): Promise<unknown> {
    const counts = this.#tables.map(table => `(select count(*) from ${table})`)
    const statements = [
      sql`select * from users where id = ${id}`,
      sql`select * from orders where user_id = ${id} order by id`,
      sql`select * from posts where author_id = ${id} order by id`,
      sql`select * from comments where author_id = ${id} order by id`,
      { text: `select ${counts.join(', ')}, (select sum(comment_count) from posts)`, values: [] },
    ]
    return Promise.all(statements.map(statement => this.app.engine.read(statement)))
  }

  [Symbol.asyncDispose](): PromiseLike<void> {
    return this.app[Symbol.asyncDispose]()
  }
}

test('every operation of the access table has a row and a request in this test, and every route has an operation', async () => {
  assert.deepEqual(operations.toSorted(), Object.keys(accessTable).sort())
  const routes = await registeredRoutes()
  const others = [...alsoReadAnOrder, 'GET /graphql']
  const used = new Set([...Object.values(attempts).map(({ route }) => route), ...others])
  for (const route of used) {
    for (const prefix of route.endsWith('/graphql') ? [''] : prefixes) {
      assert.ok(routes.has(route.replace(' ', ` ${prefix}`)), `src/rest/serve.ts registers no route ${route}`)
    }
  }
  const unknown = [...routes]
    .map(route => route.replace(' /api/', ' /'))
    .filter(route => !used.has(route) && !ignoreTokens.some(pattern => pattern.test(route)))
  assert.deepEqual(unknown, [], 'routes without an operation in the access table')
})

for (const kind of engineKinds) {
  for (const policy of ['open', 'enforced'] as const) {
    // Without a policy hardly anything is refused, so that PostgreSQL would answer as SQLite does.
    const rare = kind.kind === 'postgres' && policy === 'open' && onlyInFull
    describe(`Access under the policy ${policy}, on ${kind.name}`, { skip: kind.skip || rare }, () => {
      const stage = shared(() => Stage.set(kind, policy))

      it('R-ERR-8, R-ERR-9, R-AUTH-4, R-AUTH-5: every caller gets exactly the promised result', async () => {
        const [expected, actual]: Record<string, number>[] = [{}, {}]
        // Engine, prefix and the reason why a token is invalid are independent, so not every combination is tested.
        const isSqlite = kind.kind === 'sqlite'
        for (const [at, operation] of operations.entries()) {
          const { route, query, about, body, success, revokes } = attempts[operation]
          const line = isSqlite || query !== undefined ? route : route.replace(' ', ' /api')
          const [invalid = 'expired token'] = invalidCallers.slice(at % invalidCallers.length)
          for (const caller of isSqlite ? [...validCallers, invalid] : validCallers) {
            const owner = await stage.person()
            const isOwner = revokes === true && (caller === 'other user' || caller === 'admin')
            const token = await stage.tokenAs(isOwner ? 'owner' : caller, owner)
            const subject = await stage.subject(about, owner)
            const verdict = verdictOn(caller, operation, policy)
            // 204 is also the answer when nothing was done.
            const before = verdict === 'yes' && success !== 204 ? undefined : await stage.stateOf(owner)
            const asked = query === undefined ? body?.() : { query: query.replace(':id', String(subject.id)) }
            const response = await stage.request(line, subject, asked, token)
            const cell = `${line}, to ${operation}, as ${caller}`
            Object.assign(actual ?? {}, { [cell]: response.status })
            Object.assign(expected ?? {}, { [cell]: statusOf(verdict, success) })
            if (before === undefined) continue
            if (verdict === 'yes') {
              assert.notDeepEqual(await stage.stateOf(owner), before, `${cell}: nothing changed`)
              continue
            }
            // A caller that is refused without an error must have changed nothing.
            if (query !== undefined) assert.match(response.body, /^\{"errors":\[\{"message":/, cell)
            else if (response.status >= 400) assertRefusal(response, response.status)
            assert.equal(response.headers.has('www-authenticate'), response.status === 401, cell)
            assert.deepEqual(await stage.stateOf(owner), before, `${cell}: refused, but something changed`)
          }
        }
        assert.deepEqual(actual, expected)
      })

      if (kind.kind !== 'sqlite') return // what follows depends on the policy, and not on the engine

      it('callers that may see an order may see its items and tracking, and no other callers may, and who pays it lists the payment', async () => {
        for (const line of alsoReadAnOrder) {
          for (const caller of validCallers) {
            const owner = await stage.person()
            const order = await stage.subject('order', owner)
            const token = await stage.tokenOf(owner)
            bodyOf(await stage.request('POST /orders/:id/payment', order, {}, token))
            const { body } = await send(stage.app, 'GET /payments?sort=-id&limit=1', undefined, token)
            assert.equal(JSON.parse(body)[0]?.order_id, order.id)
            const { status } = await stage.request(line, order, undefined, await stage.tokenAs(caller, owner))
            assert.equal(status, statusOf(verdictOn(caller, 'read an order', policy)), `${line} as ${caller}`)
          }
        }
      })

      it('R-ERR-9: the user of an order sees the payment that paid it, even if another user paid, and other users do not see it', async () => {
        for (const caller of validCallers) {
          const owner = await stage.person()
          const order = await stage.subject('order', owner)
          const admin = await stage.tokenAs('admin', owner)
          const paid = await stage.request('POST /orders/:id/payment', order, {}, admin)
          const token = await stage.tokenAs(caller, owner)
          const { status, body } = await send(stage.app, `GET ${paymentLinkOf(paid)}`, undefined, token)
          assert.equal(status, statusOf(verdictOn(caller, 'read a payment', policy)), caller)
          if (status === 200) assert.equal(JSON.parse(body).order_id, order.id)
        }
      })

      it('a PUT with another password needs the same right as a PATCH', async () => {
        for (const caller of validCallers) {
          const owner = await stage.person()
          const token = await stage.tokenAs(caller, owner)
          const before = await stage.stateOf(owner)
          const body = { ...somebody(), password: 'another one' }
          const { status } = await stage.request('PUT /users/:id', owner, body, token)
          assert.equal(status, statusOf(verdictOn(caller, 'change an existing password', policy)), caller)
          if (status >= 400) assert.deepEqual(await stage.stateOf(owner), before, caller)
        }
      })

      it("a caller that may change a user may also set the user's first password", async () => {
        for (const caller of ['anonymous', 'other user', 'admin'] as const) {
          const user = await stage.person(null)
          const token = await stage.tokenAs(caller, user)
          const { status } = await stage.request('PATCH /users/:id', user, { password }, token)
          assert.equal(status, statusOf(verdictOn(caller, 'change a user', policy)), caller)
          if (status === 200)
            assert.equal((await stage.request('GET /users/me', user, undefined, await stage.tokenOf(user))).status, 200)
        }
      })

      if (policy !== 'enforced') return

      it('R-ERR-9: under the enforced policy no caller can infer hidden data from a 404 or a 400', async () => {
        const user = await stage.person()
        const token = await stage.tokenOf(user)
        for (const id of ['123456789', 'abc', '9007199254740993']) {
          for (const line of [`GET /users/${id}/orders`, `POST /users/${id}/orders`]) {
            const body = line.startsWith('POST') ? { items: 'bad' } : undefined
            assertRefusal(await send(stage.app, line, body), 401)
            assertRefusal(await send(stage.app, line, body, token), 403)
          }
          for (const line of [`GET /orders/${id}`, `GET /orders/${id}/items`, `POST /orders/${id}/payment`]) {
            assertRefusal(await send(stage.app, line), 401)
            assertRefusal(await send(stage.app, line, undefined, token), 404, 'Order not found')
          }
          assertRefusal(await send(stage.app, `DELETE /orders/${id}`), 401)
          assert.equal((await send(stage.app, `DELETE /orders/${id}`, undefined, token)).status, 204)
          for (const method of ['GET', 'PUT', 'PATCH', 'DELETE']) {
            const body = method === 'PUT' || method === 'PATCH' ? { age: 'bad' } : undefined
            assertRefusal(await send(stage.app, `${method} /users/${id}`, body), 401)
            assertRefusal(await send(stage.app, `${method} /users/${id}`, body, token), 403)
          }
        }
      })
    })
  }
}
