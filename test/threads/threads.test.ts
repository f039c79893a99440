import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, before, describe, it, mock, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import type { Worker } from 'node:worker_threads'
import { readConfig } from '../../src/config.ts'
import { demoLogin } from '../../src/core/demo.ts'
import { orLast, Serving } from '../../src/threads/serving.ts'
import type { ServingData } from '../../src/threads/serving-thread.ts'
import { startThreads } from '../../src/threads/supervisor.ts'
import { connectTo } from '../storage/transaction.ts'
import { startTestApp, startTestAppOn } from '../support/app.ts'
import { postgres } from '../support/engines.ts'
import { inForm, notInQuick } from '../support/form.ts'
import { query, read } from '../support/graphql.ts'
import { ask, RawConnection, sendRaw } from '../support/http.ts'
import { collectLogs } from '../support/logs.ts'
import { cheapPasswords } from '../support/passwords.ts'
import { bodyOf, createMember, createUser, send } from '../support/rest.ts'
import { metricOf, type Operation, SocketClient } from '../support/sockets.ts'
import { waitUntil, within } from '../support/wait.ts'

const two = { THREADS: '2', RATE_LIMIT_MAX: '0', LOGIN_LIMIT_MAX: '0' }

const servedBy = (logs: readonly Readonly<Record<string, unknown>>[]): Set<unknown> =>
  new Set(logs.filter(({ msg }) => msg === 'answered').map(({ thread }) => thread))

describe('Two threads', () => {
  const workers: Worker[] = []
  let app: Awaited<ReturnType<typeof startTestApp>>
  let [hashes, attempts] = [0, 0]
  before(async () => {
    const note = (worker: Worker) => workers.push(worker)
    process.on('worker', note)
    const passwords = cheapPasswords()
    const [hash, matches] = [mock.method(passwords, 'hash'), mock.method(passwords, 'matches')]
    const limits = {
      RATE_LIMIT_MAX: '60',
      RATE_LIMIT_PATHS: '/api/',
      CONNECTIONS_PER_CLIENT: '200',
      SOCKETS_PER_CLIENT: '10',
      SUBSCRIPTION_GROUPS_PER_CLIENT: '9',
      SUBSCRIPTION_GROUPS: '12',
    }
    app = await startTestApp({ ...two, ...limits, DEMO_DATA: 'true' }, { passwords })
    process.off('worker', note)
    hashes = hash.mock.callCount()
    attempts = matches.mock.callCount()
  })
  after(() => app[Symbol.asyncDispose]())

  /** Ends a thread, and waits until another one has replaced it. It must listen where the others do. */
  const replace = async (name: string, end = (worker: Worker): unknown => worker.terminate()) => {
    const told = () => app.logs.map(({ msg }) => String(msg)).filter(msg => msg.startsWith('Listening'))
    const { length } = told()
    process.once('worker', worker => workers.push(worker))
    await end(workers.findLast(({ threadName }) => threadName === name) ?? assert.fail(name))
    await waitUntil(() => told().length === length + 1)
    assert.equal(new Set(told()).size, 1, told().join())
  }

  it('report their metrics as one server, and a thread that ends is replaced while the other continues', {
    skip: notInQuick,
  }, async () => {
    const listsOf = /^duet_http_request_seconds_count\{method="GET",route="\/users",status="200"\} (\d+)$/m
    const lists = (body: string) => Number(listsOf.exec(body)?.[1] ?? 0)
    const metrics = async () => (await ask(`${app.url}/metrics`)).body
    const before = lists(await metrics())
    const answered = app.logs.length
    let sent = 0
    await waitUntil(async () => {
      await sendRaw(app.port, 'GET /users HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
      sent++
      return servedBy(app.logs.slice(answered)).size === 2
    })
    let body = ''
    await waitUntil(async () => {
      body = await metrics() // of a thread that is late it has what the thread told before
      return lists(body) - before === sent
    })
    assert.equal(body.match(/^process_cpu_seconds_total /gm)?.length, 1)
    const reported = Number(/^process_resident_memory_bytes (\S+)$/m.exec(body)?.[1])
    assert.ok(reported < 1.5 * process.memoryUsage.rss(), 'the memory of the process is counted once')

    const user = await createUser(app)
    const restarts = await metricOf(app, 'duet_thread_restarts_total')
    // An error that nobody handles lets the request in progress get its answer, and both are in the log.
    using slow = await RawConnection.open(app.port)
    const head = 'POST /users HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: slow\r\nContent-Type: application/json\r\n'
    const own = () => app.logs.filter(({ requestId }) => requestId === 'slow')
    slow.write(`${head}Content-Length: 2\r\n\r\n[]`)
    assert.equal((await slow.response()).status, 400)
    await waitUntil(() => own().length === 1)
    slow.write(`${head}Content-Length: 2\r\nExpect: 100-continue\r\n\r\n`)
    assert.equal((await slow.response()).status, 100)
    await replace(`serving ${own()[0]?.thread}`, async worker => {
      const from = app.logs.length
      worker.postMessage(null) // no call, and no answer to one
      await waitUntil(() => app.logs.slice(from).some(({ level }) => Number(level) >= 50))
      slow.write('[]')
      assert.equal((await slow.response()).status, 400)
    })
    const told = app.logs.map(({ msg }) => msg).join()
    for (const part of ['Unhandled error: stopping', 'Another one replaces it']) assert.ok(told.includes(part), part)
    assert.equal(own().length, 2)
    assert.equal(await metricOf(app, 'duet_thread_restarts_total'), restarts + 1)
    const line = `GET /users/${user.id} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`
    for (let times = 0; times < 20; times++) assert.equal((await sendRaw(app.port, line)).status, 200)
    assert.equal((await createUser(app)).id, user.id + 1)
  })

  it('are of one server: a second one does not start on their port', async () => {
    await assert.rejects(startTestApp({ ...two, PORT: String(app.port) }), { code: 'EADDRINUSE', syscall: 'listen' })
  })

  it('all know of maintenance when the switch has returned, and all know of its end, also if it is switched twice at once', async () => {
    using open = new DisposableStack()
    const all = await Promise.all(Array.from({ length: 8 }, async () => open.use(await RawConnection.open(app.port))))
    const statuses = async () => {
      for (const connection of all) connection.write('GET /users HTTP/1.1\r\nHost: localhost\r\n\r\n')
      return new Set(await Promise.all(all.map(async each => (await each.response()).status)))
    }
    for (let times = 0; times < 5; times++) {
      for (const status of [503, 200]) {
        await Promise.all([app.app.toggleMaintenance(), app.app.toggleMaintenance()]) // the same as before
        await app.app.toggleMaintenance()
        assert.deepEqual(await statuses(), new Set([status]))
      }
    }
  })

  it('hold back their last answers until none of them listens', async t => {
    t.mock.timers.enable({ apis: ['setTimeout'] }) // after a moment each gets its answer in any case
    const both = [1, 2].map(n => workers.findLast(({ threadName }) => threadName === `serving ${n}`) ?? assert.fail())
    const answers = both.map(worker => t.mock.method(worker, 'postMessage', () => {}).mock)
    for (const expected of [0, 1]) {
      both[expected]?.emit('message', { id: 0, name: 'stoppedListening', args: [] })
      await turn()
      for (const each of answers) assert.equal(each.callCount(), expected)
    }
  })

  it('let the demo user log in, and know of maintenance, also a thread that replaces another', {
    skip: notInQuick,
  }, async () => {
    assert.equal(hashes, 1, 'one thread writes the demo data')
    assert.equal(attempts, 1, 'one thread tries the login')
    assert.equal(app.app.demoLoginWorks, true)

    const body = JSON.stringify(demoLogin)
    const login = `POST /tokens HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
    const page = 'GET / HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\nConnection: close\r\n\r\n'
    /** Sends a request until both threads have answered it. */
    const onBoth = async (request: string, check: (answer: Awaited<ReturnType<typeof sendRaw>>) => void) => {
      const [from, path] = [app.logs.length, request.split(' ')[1]]
      await waitUntil(async () => {
        check(await sendRaw(app.port, request))
        return servedBy(app.logs.slice(from).filter(line => line.path === path)).size === 2
      })
    }
    const loginOnBoth = async () => {
      await onBoth(login, ({ status }) => assert.equal(status, 200))
      await onBoth(page, shown => assert.ok(shown.body.includes(demoLogin.password)))
    }
    await loginOnBoth()
    await app.app.toggleMaintenance()
    await replace('serving 2')
    await onBoth(login, ({ status }) => assert.equal(status, 503))
    const switched = once(process, 'worker').then(() => app.app.toggleMaintenance()) // while the next one starts
    await Promise.all([replace('serving 1'), switched])
    await loginOnBoth()
  })

  it('count the requests of a client together, and of its connections, sockets and different subscriptions each its share', async () => {
    const line = 'GET /api/users HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'
    const answers = await Promise.all(Array.from({ length: 90 }, () => sendRaw(app.port, line)))
    assert.equal(answers.filter(({ status }) => status === 200).length, 60)
    assert.equal(answers.filter(({ status }) => status === 429).length, 30)
    await waitUntil(() => servedBy(app.logs.filter(({ path }) => path === '/api/users')).size === 2)

    const author = await createMember(app)
    using sockets = new DisposableStack()
    const opened: SocketClient[] = []
    // The system decides which thread gets a connection. Each has half of ten sockets.
    while (opened.length < 10)
      await SocketClient.connect(app).then(
        each => opened.push(sockets.use(each)),
        () => {},
      )
    for (let tries = 0; tries < 10; tries++) await assert.rejects(SocketClient.open(app), 'an eleventh socket')
    const texts = Array.from({ length: 6 }, (_, index) => `subscription { postAdded { key${index}: id } }`)
    // Half of nine, rounded up, on every socket: those of one thread count once.
    const accepted = opened.flatMap(each => texts.slice(0, 5).map(text => each.begin(text)))
    await waitUntil(async () => (await metricOf(app, 'duet_subscriptions')) === 50)
    for (const each of opened) {
      const { errors } = await each.ask(texts[5] ?? '')
      assert.equal(errors?.[0]?.extensions.code, 'SUBSCRIPTION_LIMIT_EXCEEDED')
    }
    await query(app, 'mutation { createPost(title: "T", content: "C") { id } }', author)
    for (const each of accepted) await waitUntil(() => each.events.length > 0)

    // All clients together have half of twelve on each thread.
    const others: Operation[] = []
    for (let count = 0; count < 16; count++) {
      const other = sockets.use(await SocketClient.connect(app, { localAddress: `127.0.0.${count + 10}` }))
      for (let n = 0; n < 3; n++) others.push(other.begin(`subscription { postAdded { other${count}x${n}: id } }`))
    }
    const refused = () => others.filter(({ errors }) => errors !== undefined).length
    await waitUntil(async () => (await metricOf(app, 'duet_subscriptions')) === 50 + others.length - refused())
    await waitUntil(async () => (await metricOf(app, 'duet_subscription_groups')) === 12)

    using connections = new DisposableStack()
    let closed = 0
    for (let count = 0; count < 500; count++) {
      const socket = connect({ port: app.port, host: '127.0.0.1', localAddress: '127.0.0.2' })
      connections.defer(() => socket.destroy())
      socket.on('error', () => {}).on('close', () => closed++)
      await once(socket, 'connect')
    }
    await waitUntil(() => closed >= 300)
    assert.equal(closed, 300, 'each thread keeps a hundred')
  })
})

test('the server stops if its threads end again and again within a minute', { skip: notInQuick }, async t => {
  const { logger } = collectLogs()
  const config = readConfig({ ...two, PORT: '0', DATABASE_URL: 'sqlite::memory:', DEMO_DATA: 'false', DRAIN_MS: '0' })
  const workers: Worker[] = []
  const note = (worker: Worker) => workers.push(worker)
  process.on('worker', note)
  const stopped: Error[] = []
  const onGiveUp = (error: Error) => stopped.push(error)
  const written: string[] = []
  const write = (lines: string) => written.push(lines)
  const started = () => written.join().split('Listening').length - 1
  await using app = await startThreads(config, { logger, write, onGiveUp, passwords: cheapPasswords() })
  let later = 0
  const now = performance.now.bind(performance)
  t.mock.method(performance, 'now', () => now() + later)
  for (let times = 1; times <= 7; times++) {
    await waitUntil(() => stopped.length > 0 || started() === times + 1)
    assert.deepEqual(stopped, [], `after ${times - 1} ends`)
    if (times === 5)
      assert.equal(await metricOf(app, 'duet_thread_restarts_total'), 4, 'those of earlier minutes count')
    if (times <= 4) later += 60_000
    await workers.findLast(({ threadName }) => threadName === 'serving 1')?.terminate()
  }
  await waitUntil(() => stopped.length > 0)
  assert.match(String(stopped), /again and again/)
  process.off('worker', note)
})

test('threads have no more connections to PostgreSQL together than one may have', { skip: postgres.skip }, async () => {
  await using app = await startTestAppOn(postgres, { ...two, DATABASE_POOL_MAX: '4' })
  await using holder = await connectTo(app.database.location)
  await using watcher = await connectTo(app.database.location)
  const ours = "select pid from pg_stat_activity where application_name = 'duet' and datname = current_database()"
  await holder.query('begin; lock table users')
  const line = 'GET /users HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'
  const answers = Promise.all(Array.from({ length: 40 }, () => sendRaw(app.port, line)))
  await waitUntil(async () => (await watcher.query(ours)).rows.length >= 4)
  await holder.query('rollback')
  for (const { status } of await answers) assert.equal(status, 200)
  assert.equal((await watcher.query(ours)).rows.length, 4)
})

test('a thread that is late with its metrics is counted with what it told last', async () => {
  const late = () => new Promise<never>(() => {})
  const ended = () => Promise.reject(new Error('ended'))
  const answers: (() => Promise<number>)[] = [late, async () => 7, late, ended, async () => 9]
  const metrics = orLast(() => (answers.shift() ?? late)(), 1)
  const told: (number | undefined)[] = []
  for (let times = 0; times < 5; times++) told.push(await metrics())
  assert.deepEqual(told, [undefined, 7, 7, 7, 9])
})

test('calls to a thread that ends without an answer are rejected, and so are later ones', async () => {
  const errors: unknown[] = []
  const note = (error: unknown) => errors.push(error)
  const thread = new Serving({} as ServingData, {}, () => {}, note) // without settings it fails while it loads
  await assert.rejects(within(thread.call('reloadKeys'), 'an error'), /The other thread has ended/)
  await assert.rejects(Promise.race([thread.call('reloadKeys'), turn()]), /The other thread has ended/)
  assert.equal(errors.length, 1)
})

test('a write that was acknowledged on one connection is seen by the next read on any thread', {
  skip: notInQuick,
}, async () => {
  await using app = await startTestApp(two)
  const [user, author] = [await createUser(app), await createMember(app)]
  const graphql = (text: string) => read<{ post: { id: string; title: string } }>(app, text, author)
  const { post } = await graphql('mutation { post: createPost(title: "0", content: "C") { id } }')
  /** Each has a value that only grows: each write has a larger number. */
  const registers = [
    {
      known: 0,
      write: async (value: number) => bodyOf(await send(app, `PATCH /users/${user.id}`, { name: `${value}` })),
      read: async () => Number(/^\d+$/.exec(bodyOf(await send(app, `GET /users/${user.id}`)).name)?.[0] ?? 0),
    },
    {
      known: 0,
      write: (value: number) => graphql(`mutation { updatePost(id: ${post.id}, title: "${value}") { id } }`),
      read: async () => Number((await graphql(`{ post(id: ${post.id}) { title } }`)).post.title),
    },
  ]
  /** Each has a connection of its own, because all of them ask at once. A connection stays with one thread. */
  const clients = Array.from({ length: 8 })
  let running = registers.length
  const check = async (register: (typeof registers)[number]) => {
    const { known } = register
    const found = await register.read()
    assert.ok(found >= known, `${found} was read after ${known} was acknowledged`)
  }
  const writers = registers.map(async register => {
    for (let value = 1; value <= inForm(10, 200); value++) {
      await register.write(value)
      register.known = value
      await Promise.all(clients.map(() => check(register)))
    }
    running--
  })
  const readers = clients.map(async () => {
    while (running > 0) for (const register of registers) await check(register)
  })
  await Promise.all([...writers, ...readers])
  assert.deepEqual([...servedBy(app.logs)].sort(), [1, 2], 'both threads have served')
})
