import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { before, describe, it } from 'node:test'
import { CloseCode } from 'graphql-ws'
import { together } from '../runner/together.ts'
import { connectTo } from '../storage/transaction.ts'
import { startTestApp, startTestAppOn } from '../support/app.ts'
import { engineKinds, postgres, sqlite } from '../support/engines.ts'
import { dataOf, query, read } from '../support/graphql.ts'
import { ask, isRefused, RawConnection } from '../support/http.ts'
import { tokenKeys } from '../support/keys.ts'
import { assertRefusal } from '../support/refusal.ts'
import { bodyOf, createMember, logIn, type Member, send } from '../support/rest.ts'
import { shared } from '../support/shared.ts'
import {
  clientFrame,
  metricOf,
  opcodes,
  RawSocket,
  SocketClient,
  untilNoSocketIsLeft,
  upgradeLines,
} from '../support/sockets.ts'
import { waitUntil } from '../support/wait.ts'
import { newPost } from './posts.ts'

const posts = 'subscription { postAdded { id } }'
const me = '{ me { id } }'
const unlimited = { RATE_LIMIT_MAX: '0', LOGIN_LIMIT_MAX: '0' }

describe('The life of a socket', () => {
  for (const kind of engineKinds) {
    describe(`Its user, on ${kind.name}`, { skip: kind.skip }, () => {
      const app = shared(() => startTestAppOn(kind, unlimited))
      let ann: Member
      before(async () => (ann = await createMember(app)))

      it('a socket has the user of the token in its first message or its request, and is anonymous without a token', async () => {
        for (const payload of [{ Authorization: `Bearer ${ann.token}` }, { authorization: `bearer ${ann.token}` }]) {
          using client = await SocketClient.open(app)
          await client.initialise(payload)
          assert.deepEqual(await client.read(me), { me: { id: String(ann.id) } })
        }
        using byHeader = await SocketClient.connect(app, { headers: { authorization: `Bearer ${ann.token}` } })
        assert.deepEqual(await byHeader.read(me), { me: { id: String(ann.id) } })
        using anonymous = await SocketClient.connect(app)
        assert.equal((await anonymous.ask(me)).errors?.[0]?.extensions.code, 'UNAUTHENTICATED')
      })

      it('4403 for an invalid token in the request, before any message, or in connection_init, and 4400 for one that is not a string', async () => {
        const invalid = ['Bearer nonsense', 'Bearer', ann.token, `Basic ${ann.token}`]
        for (const authorization of invalid) {
          using client = await SocketClient.open(app, { headers: { authorization } })
          assert.equal((await client.closed).code, CloseCode.Forbidden, authorization)
        }
        const tampered = [`Bearer ${ann.token.slice(0, -8)}AAAAAAAA`, `Bearer ${ann.token}, Bearer ${ann.token}`]
        for (const value of ['', ...invalid, ...tampered, 0, true, {}, [`Bearer ${ann.token}`], { toString: null }]) {
          const code = typeof value === 'string' ? CloseCode.Forbidden : CloseCode.BadRequest
          for (const name of ['Authorization', 'authorization']) {
            using client = await SocketClient.open(app)
            client.send({ type: 'connection_init', payload: { [name]: value } })
            assert.equal((await client.closed).code, code, `${name}: ${JSON.stringify(value)}`)
            assert.deepEqual(client.messages, [])
          }
        }
        assert.ok(app.logs.every(({ level }) => Number(level) < 40))
      })

      const sockets = async ({ token }: Member) => {
        const logins = [{ token }, { headers: { authorization: `Bearer ${token}` } }]
        const both = await Promise.all(logins.map(login => SocketClient.connect(app, login)))
        for (const client of both) client.begin(posts)
        return both
      }

      /** Checks that an action closes all sockets of a member, and no others. */
      const closedBy = async (work: (member: Member) => Promise<unknown>) => {
        const member = await createMember(app)
        const own = await sockets(member)
        const others = [...(await sockets(ann)), await SocketClient.connect(app)]
        // Other changes of a user close no socket.
        for (const { id, token } of [member, ann]) bodyOf(await send(app, `PATCH /users/${id}`, { age: 30 }, token))
        await work(member)
        for (const client of own) assert.equal((await client.closed).code, CloseCode.Forbidden)
        for (const client of others) assert.deepEqual(await client.read('{ __typename }'), { __typename: 'Query' })
        for (const client of others) client[Symbol.dispose]()
        await untilNoSocketIsLeft(app)
        using late = await SocketClient.open(app)
        late.send({ type: 'connection_init', payload: { Authorization: `Bearer ${member.token}` } })
        assert.equal((await late.closed).code, CloseCode.Forbidden)
      }

      const password = 'another password'
      const changes: Readonly<Record<string, (member: Member) => Promise<unknown>>> = {
        'at once when the user is deleted': ({ id, token }) => send(app, `DELETE /users/${id}`, undefined, token),
        'at once when the password is changed': async ({ id, token, email }) => {
          await send(app, `PATCH /users/${id}`, { password }, token)
          await logIn(app, email, password)
        },
        'when the role is changed over another connection to the database, within about a second': ({ id }) =>
          app.engine.write('setRole', { id }, 'admin', 'another version'),
      }
      for (const [when, change] of Object.entries(changes)) it(`4403 ${when}`, () => closedBy(change))

      it('a mutation that is sent just before its token is revoked is refused', async () => {
        const member = await createMember(app)
        using client = await SocketClient.connect(app, { token: member.token })
        const deletion = send(app, `DELETE /users/${member.id}`, undefined, member.token)
        const text = 'mutation { createPost(title: "T", content: "by nobody") { id } }'
        const mutations = Array.from({ length: 20 }, () => client.begin(text))
        await deletion
        assert.equal((await client.closed).code, CloseCode.Forbidden)
        for (const { errors } of mutations)
          assert.ok(errors === undefined || errors[0]?.extensions.code === 'UNAUTHENTICATED', JSON.stringify(errors))
        const { posts: left } = await read<{ posts: { content: string }[] }>(app, '{ posts(limit: 100) { content } }')
        assert.ok(!left.some(({ content }) => content === 'by nobody'))
      })
    })
  }

  it('4403 on one instance for a user deleted on another, even before it has read the event', {
    skip: postgres.skip,
  }, async () => {
    await using database = await postgres.create()
    const settings = { ...unlimited, DATABASE_URL: database.location, TOKEN_KEYS: tokenKeys, DATABASE_POOL_MAX: '4' }
    await using one = await startTestApp(settings)
    await using other = await startTestApp(settings)
    const { id, token } = await createMember(one)
    using socket = await SocketClient.connect(other, { token })
    assert.deepEqual(await socket.read(me), { me: { id: String(id) } })
    await using slow = await connectTo(database.location)
    // While this transaction is open, no event gets a position.
    await slow.query('begin; select from event_head for update')
    await send(one, `DELETE /users/${id}`, undefined, token)
    const asked = socket.begin('{ posts { id } }')
    await waitUntil(() => socket.isClosed || asked.isOver)
    assert.deepEqual([asked.events, asked.isOver], [[], false])
    assert.equal((await socket.closed).code, 4403)
  })

  it('no 4408 for a connection_init that the service was too busy to read in time', async () => {
    await using app = await startTestApp({ SOCKET_INIT_TIMEOUT_MS: '200', THREADS: '1' })
    using client = await SocketClient.open(app)
    const acknowledged = client.initialise()
    for (const end = performance.now() + 300; performance.now() < end; );
    await acknowledged
  })

  describe('Timeouts and its end', () => {
    const it = together()

    it('4408 for a socket without connection_init within three seconds, and others stay open', async () => {
      await using app = await startTestApp({ ...unlimited, SOCKET_INIT_TIMEOUT_MS: '3000' })
      const begun = performance.now()
      using silent = await SocketClient.open(app)
      using chatty = await SocketClient.open(app)
      using other = await SocketClient.connect(app)
      chatty.send({ type: 'ping' })
      for (const client of [silent, chatty])
        assert.equal((await client.closed).code, CloseCode.ConnectionInitialisationTimeout)
      assert.ok(performance.now() - begun > 2_900)
      await other.read('{ __typename }')
    })

    it('4403 when the token expires, and not before', async () => {
      await using app = await startTestApp({ ...unlimited, TOKEN_TTL_SECONDS: '3' })
      const { email } = await createMember(app)
      const token = await logIn(app, email, 'right password')
      const { exp } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
      using byMessage = await SocketClient.connect(app, { token })
      using byRequest = await SocketClient.connect(app, { headers: { authorization: `Bearer ${token}` } })
      using anonymous = await SocketClient.connect(app)
      for (const client of [byMessage, byRequest]) {
        client.begin(posts)
        assert.equal((await client.closed).code, CloseCode.Forbidden)
        assert.ok(Date.now() / 1000 >= exp, `closed at ${Date.now() / 1000}, to expire at ${exp}`)
      }
      await anonymous.read('{ __typename }')
      await waitUntil(async () => (await metricOf(app, 'duet_subscriptions')) === 0)
    })

    it('a client that does not answer the close frame is disconnected, and nothing of it is left', async () => {
      await using app = await startTestApp(unlimited)
      using silent = await RawSocket.connect(app.port)
      silent.say({ type: 'subscribe', id: '1', payload: { query: posts } })
      await waitUntil(async () => (await metricOf(app, 'duet_subscriptions')) === 1)
      silent.say({ type: 'nonsense' })
      await waitUntil(() => silent.closeCode === CloseCode.BadRequest)
      assert.equal(await metricOf(app, 'duet_subscriptions'), 0)
      await waitUntil(async () => silent.isEnded && (await metricOf(app, 'duet_sockets')) === 0)
    })

    it('a client that does not read an answer is disconnected after 30 seconds without reading, however many pongs it sends', async () => {
      await using app = await startTestApp({ RATE_LIMIT_MAX: '0', SOCKET_MESSAGES_PER_SECOND: '0' }, { stalledMs: 400 })
      const { token } = await createMember(app)
      const text = 'mutation ($c: String!) { createPost(title: "Long", content: $c) { id } }'
      for (let n = 0; n < 8; n++) dataOf(await query(app, text, { variables: { c: 'x'.repeat(65_000) }, token }))
      using idle = await RawSocket.connect(app.port)
      using socket = await RawSocket.connect(app.port)
      socket.stream.pause()
      // 20 MiB: more than the buffers between the two ends hold.
      const contents = Array.from({ length: 4 }, (_, n) => `c${n}: content`).join(' ')
      for (let n = 0; n < 10; n++)
        socket.say({ type: 'subscribe', id: String(n), payload: { query: `{ posts(limit: 8) { ${contents} } }` } })
      await waitUntil(async () => (await metricOf(app, 'duet_unsent_bytes')) > 2 ** 19)
      await waitUntil(async () => {
        socket.write(clientFrame('', { opcode: opcodes.pong }))
        return (await metricOf(app, 'duet_sockets')) === 1
      })
      assert.equal(await metricOf(app, 'duet_sockets_closed_slow_total'), 1)
      assert.equal(await metricOf(app, 'duet_connections_cut_total'), 0)
      assert.equal(await metricOf(app, 'duet_unsent_bytes'), 0)
      assert.equal(idle.isEnded, false)
    })

    it('1001 at a shutdown, after all running operations are answered, even if some clients do not answer or read', async () => {
      const app = await startTestAppOn(sqlite, unlimited)
      using client = await SocketClient.connect(app, await createMember(app))
      using watcher = await SocketClient.connect(app)
      using silent = await RawSocket.connect(app.port)
      using unheard = await RawSocket.connect(app.port)
      unheard.stream.pause()
      // Another connection locks the database, so operations keep running until it releases the lock.
      const holder = new DatabaseSync(app.database.location)
      holder.exec('begin immediate')
      const text = 'mutation { createPost(title: "T", content: "C") { id } }'
      const operations = Array.from({ length: 5 }, () => client.begin(text))
      client.send({ type: 'ping' })
      await client.until(() => client.messages.some(({ type }) => type === 'pong'))
      const disposal = app[Symbol.asyncDispose]()
      assert.deepEqual(await watcher.closed, { code: 1001, reason: 'Going away' })
      assert.ok(!client.isClosed)
      const late = client.begin(text)
      await waitUntil(() => silent.closeCode === 1001)
      holder.exec('rollback')
      holder.close()
      assert.equal((await client.closed).code, 1001)
      for (const { events } of operations) assert.equal(events.length, 1)
      assert.deepEqual(late.events, [], 'begun when the socket was to end')
      await disposal
    })

    it('1001 comes after the server stops listening, so that clients reconnect to another instance', async () => {
      const app = await startTestApp({ ...unlimited, DRAIN_MS: '3000' })
      using client = await SocketClient.connect(app, await createMember(app))
      const subscription = await client.begin(posts).listening(text => newPost(client, text))
      const disposal = app[Symbol.asyncDispose]()
      await waitUntil(async () => (await ask(`${app.url}/health/ready`)).status === 503)
      // The server still listens, so events are sent.
      const id = await newPost(client)
      assert.deepEqual(await subscription.received(1), [{ postAdded: { id } }])
      assert.equal((await client.closed).code, 1001)
      assert.ok(await isRefused(app.port))
      await disposal
    })

    it('a WebSocket request that ends after all sockets were closed does not delay the shutdown', async () => {
      const app = await startTestApp({ ...unlimited, DRAIN_MS: '50' })
      using client = await SocketClient.connect(app)
      using late = await RawConnection.open(app.port)
      const bytes = `${upgradeLines().join('\r\n')}\r\n\r\n`
      late.write(bytes.slice(0, -2))
      await client.read('{ __typename }')
      const disposal = app[Symbol.asyncDispose]()
      assert.equal((await client.closed).code, 1001)
      late.write(Buffer.concat([Buffer.from(bytes.slice(-2)), clientFrame('{"type":"connection_init"}')]))
      await disposal
      assert.doesNotMatch(JSON.stringify(app.logs), /closing connections/)
    })

    it('1013 when maintenance begins, new sockets are refused with 503, and accepted after it', async () => {
      await using app = await startTestApp(unlimited)
      using client = await SocketClient.connect(app)
      using silent = await SocketClient.open(app)
      client.begin(posts)
      await app.app.toggleMaintenance()
      assert.deepEqual(await client.closed, { code: 1013, reason: 'Service under maintenance' })
      assert.equal((await silent.closed).code, 1013)
      using late = await RawSocket.open(app.port)
      assertRefusal(late.handshake, 503, 'Service under maintenance. Try again later.')
      assert.equal(late.handshake.headers.get('retry-after'), '60')
      await app.app.toggleMaintenance()
      await untilNoSocketIsLeft(app)
      using again = await SocketClient.connect(app)
      await again.read('{ __typename }')
    })
  })
})
