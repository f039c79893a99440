import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { type ConnectOptions, type Duet, iterate, live, subscribe, type Watcher } from '../../client/src/index.ts'
import { waitUntil } from '../support/wait.ts'
import {
  connectTo,
  ManualClock,
  noNetwork,
  type PostAdded,
  postAdded,
  recorder,
  TabStorage,
  tokenFor,
  uncaughtDuring,
} from './support.ts'

/** A WebSocket without a network. The test plays the service. */
class FakeSocket {
  static readonly all: FakeSocket[] = []
  onopen: ((event: never) => void) | null = null
  onmessage: ((event: { data: string }) => void) | null = null
  onclose: ((event: { code: number }) => void) | null = null
  onerror: ((event: never) => void) | null = null
  readonly sent: { type: string; id?: string; payload?: { number?: number; extensions?: object } }[] = []

  readonly url: string
  isClosed = false

  constructor(url: string, _protocol: string) {
    this.url = url
    FakeSocket.all.push(this)
  }

  send(text: string): void {
    this.sent.push(JSON.parse(text))
  }

  close(): void {
    this.isClosed = true
  }

  say(message: object): void {
    this.onmessage?.({ data: JSON.stringify(message) })
  }

  /** Opens the socket, tells the position if it is a service that does so, and answers its first ping. */
  accept(position?: string): void {
    this.onopen?.(undefined as never)
    this.say({ type: 'connection_ack', ...(position !== undefined && { payload: { position } }) })
    this.pong()
  }

  /** Sends an event to its last subscription. */
  next(title: string, position?: string, id = this.subscribed.at(-1)?.id): void {
    const extensions = position !== undefined && { extensions: { position } }
    this.say({ type: 'next', id, payload: { data: { postAdded: { title } }, ...extensions } })
  }

  refuse(code: string): void {
    this.say({ type: 'error', id: this.subscribed.at(-1)?.id, payload: [{ message: 'No', extensions: { code } }] })
  }

  get subscribed() {
    return this.sent.filter(({ type }) => type === 'subscribe')
  }

  /** The extensions of its last subscription. */
  get begun(): object | undefined {
    return this.subscribed.at(-1)?.payload?.extensions
  }

  /** Answers a ping. Default: the last one. */
  pong(index = -1): void {
    const { payload } = this.sent.filter(({ type }) => type === 'ping').at(index) ?? assert.fail('no ping')
    this.say({ type: 'pong', payload })
  }
}

/** The result of a promise that nothing more has to happen for. */
function soon<Value>(promise: Promise<Value>): Promise<Value> {
  return Promise.race([promise, turn().then(() => assert.fail('still waiting'))])
}

/** A client with such sockets, and no subscription. */
function connected(options: Partial<ConnectOptions> = {}) {
  FakeSocket.all.length = 0
  const clock = new ManualClock(0)
  const { duet, requests } = connectTo({ url: 'http://duet.test' }, { clock, WebSocket: FakeSocket, ...options })
  const listen = (own: Partial<Watcher<PostAdded>> = {}) => {
    const { watcher, ...recorded } = recorder()
    return { ...recorded, subscription: live(duet).subscribe(postAdded, {}, { ...watcher, ...own }) }
  }
  const events = (own: { after?: string } = {}) => live(duet).iterate<PostAdded>(postAdded, {}, own)
  return { clock, duet, requests, listen, events, state: () => live(duet).state.state }
}

/** The newest socket, after the client has done what it does at once. */
async function newest(): Promise<FakeSocket> {
  await turn()
  return FakeSocket.all.at(-1) ?? assert.fail('no socket')
}

/** A client with one subscription, and its socket. */
async function opened() {
  const client = connected()
  const first = client.listen()
  const next = async () => {
    const known = FakeSocket.all.length
    client.clock.pass(30_000)
    const socket = await newest()
    assert.equal(FakeSocket.all.length, known + 1)
    return socket
  }
  return { ...client, ...first, next, socket: await newest() }
}

async function accepted(position?: string) {
  const client = await opened()
  client.socket.accept(position)
  return client
}

describe('The socket of the client', () => {
  it('is opened anew with the token of a user who signs in while it is being opened', async () => {
    const storage = new TabStorage()
    const { listen, requests, state } = connected({ storage, fetch: noNetwork })
    listen()
    const first = await newest()
    storage.tell(tokenFor(1))
    const second = await newest()
    second.accept()
    assert.deepEqual(second.sent[0]?.payload, { Authorization: `Bearer ${tokenFor(1)}`, positions: true })
    first.onclose?.({ code: 1000 })
    first.say({ type: 'connection_ack' })
    assert.deepEqual([first.isClosed, state()], [true, 'live'])
    assert.equal(second.subscribed.length, 1, 'a closed socket is not heard')

    second.onclose?.({ code: 4403 })
    assert.equal(state(), 'waiting', 'not only when the token is renewed')
    await turn()
    assert.equal(requests.length, 1, 'because the service refused the token')
    for (const token of [tokenFor(1, 10), undefined]) {
      FakeSocket.all.at(-1)?.onclose?.({ code: 1006 })
      storage.tell(token) // it renews the token, then signs out, each while this one waits
      const next = await newest()
      next.accept()
      assert.deepEqual(next.sent[0]?.payload, { ...(token && { Authorization: `Bearer ${token}` }), positions: true })
    }
    const closed = FakeSocket.all.map(({ isClosed }) => isClosed)
    assert.deepEqual(closed, [true, true, true, false])
    assert.equal(requests.length, 1, 'not after each loss')
  })

  it('is opened without a token if the session is over', async () => {
    const storage = new TabStorage(tokenFor(1, -7200))
    connected({ storage, fetch: async () => Response.json({}, { status: 401 }) }).listen()
    await waitUntil(() => FakeSocket.all.length > 0)
    const socket = await newest()
    socket.accept()
    assert.deepEqual([socket.sent[0]?.payload, FakeSocket.all.length], [{ positions: true }, 1])
  })

  it('is reached over TLS if the service is, and is tried again if it cannot be opened at all', async () => {
    let isForbidden = true
    class Forbidden extends FakeSocket {
      constructor(url: string, protocol: string) {
        if (isForbidden) throw new SyntaxError('not from this page')
        super(url, protocol)
      }
    }
    const { clock, listen, state } = connected({ url: 'https://duet.test/base/', WebSocket: Forbidden })
    listen()
    await turn()
    assert.equal(state(), 'waiting')
    isForbidden = false
    clock.pass(250)
    assert.equal((await newest()).url, 'wss://duet.test/base/graphql')
  })

  it('is opened early when the network is back or the application asks, but not for one more subscription, and never twice', async () => {
    const online = new Set<() => void>()
    const page = {
      addEventListener: (name: string, listener: () => void) => name === 'online' && online.add(listener),
      removeEventListener: (_name: string, listener: () => void) => online.delete(listener),
    }
    Object.assign(globalThis, page)
    try {
      const { clock, duet, listen, socket, state } = await opened()
      const { onState, retryNow } = live(duet)
      const states: string[] = []
      const stop = onState(({ state }) => states.push(state))
      retryNow()
      socket.accept()
      listen()
      socket.pong()
      retryNow()
      for (const listener of online) listener()
      socket.onclose?.({ code: 1006 })
      listen()
      await turn()
      assert.deepEqual([FakeSocket.all.length, states], [1, ['live', 'waiting']])
      stop()
      for (const listener of online) listener()
      const second = await newest()
      second.accept()
      assert.deepEqual([FakeSocket.all.length, second.subscribed.length], [2, 3])
      onState(({ state }) => state === 'waiting' && retryNow())
      second.onclose?.({ code: 1006 })
      const third = await newest()
      third.accept()
      clock.pass(15_000) // longer than the pause that was cut short
      await turn()
      assert.deepEqual([FakeSocket.all.length, states.length, state()], [3, 2, 'live'])
      duet.close()
      assert.equal(online.size, 0)
    } finally {
      for (const name of Object.keys(page)) Reflect.deleteProperty(globalThis, name)
    }
  })

  it('is closed with its last subscription: nothing is heard after that, and no timer stays', async () => {
    const { clock, listen, socket, received, state } = await accepted()
    const other = listen()
    socket.pong()
    for (const _time of ['once', 'twice']) other.subscription.close()
    assert.deepEqual([socket.sent.at(-1), socket.isClosed], [{ type: 'complete', id: '2' }, false])
    using elsewhere = connectTo({ url: 'http://duet.test' }, { WebSocket: FakeSocket })
    assert.deepEqual([state(), live(elsewhere.duet).state.state], ['live', 'idle'])
    socket.next('sent before that was read')
    socket.say({ type: 'complete', id: '1' })
    assert.deepEqual([other.received, received], [['start'], ['start', 'end']])
    assert.deepEqual([state(), socket.isClosed, clock.due], ['idle', true, []])
  })

  it('tells that events arrive when the service has accepted that subscription: not another one, and not before a refusal', async () => {
    const { clock, listen, socket } = await opened()
    socket.onopen?.(undefined as never)
    socket.say({ type: 'connection_ack' })
    const [second, third] = [listen(), listen()] // they join before anything is answered
    socket.pong(-2)
    assert.deepEqual([second.received, third.received], [['start'], []])
    for (const code of ['SERVICE_UNAVAILABLE', 'INTERNAL_SERVER_ERROR']) {
      socket.refuse(code)
      socket.pong()
      assert.deepEqual([third.received, third.errors], [[], []])
      clock.pass(1500)
    }
    socket.pong()
    assert.deepEqual([third.received, socket.subscribed.length], [['start'], 5], 'only the refused one begins again')
    socket.refuse('RATE_LIMITED')
    socket.onclose?.({ code: 1006 })
    clock.pass(250)
    const next = await newest()
    next.accept()
    clock.pass(3000)
    assert.deepEqual([FakeSocket.all.length, next.subscribed.length], [2, 3], 'each once, also the one that waited')
  })

  it('knows the position of an event when it gives it, and continues if the application fails', async () => {
    const { listen, socket } = await accepted()
    const fault = new Error('a fault of the application')
    const positions: unknown[] = []
    const onData = () => {
      positions.push(subscription.position)
      throw fault
    }
    const { subscription } = listen({ onData })
    const uncaught = await uncaughtDuring(async () => {
      for (const position of ['p1', 'p2']) socket.next('post', position)
    })
    assert.deepEqual([positions, uncaught, socket.isClosed], [['p1', 'p2'], [fault, fault], false])
  })

  it('is not opened for a subscription that was closed meanwhile, nor twice for the next one', async () => {
    const { duet, listen, state } = connected()
    listen().subscription.close()
    live(duet).retryNow()
    await turn()
    assert.equal(FakeSocket.all.length, 0)
    listen().subscription.close()
    const { subscription: last } = listen()
    const socket = await newest()
    live(duet).onState(({ state }) => state === 'connecting' && last.close())
    socket.onclose?.({ code: 1006 })
    live(duet).retryNow()
    await turn()
    assert.deepEqual([FakeSocket.all.length, state()], [1, 'idle'])
  })

  it('is opened anew for who subscribes after close(): it follows the next user, and is closed again', async () => {
    const token = tokenFor(2)
    const { duet, listen, state } = connected({ fetch: async () => Response.json({ token }, { status: 201 }) })
    const signIn = async () => {
      await duet.signIn({ email: 'grace@example.com', password: 'demo-password' })
      await turn()
    }
    assert.equal(state(), 'idle')
    await signIn()
    assert.equal(FakeSocket.all.length, 0, 'nothing is subscribed')
    let atOnce: ReturnType<typeof listen> | undefined
    const onEnd = () => {
      atOnce = listen()
    }
    const before = listen({ onEnd })
    duet.close()
    const again = listen()
    await signIn()
    const socket = await newest()
    socket.accept()
    assert.deepEqual(socket.sent[0]?.payload, { Authorization: `Bearer ${token}`, positions: true })
    duet.close()
    assert.deepEqual([before.received, socket.isClosed], [[], true])
    for (const each of [again, atOnce]) assert.deepEqual(each?.received, ['start', 'end'])
  })

  it('is closed if the service sends nothing for too long', async () => {
    const { clock, duet, socket, state } = await accepted()
    assert.equal(state(), 'live')
    clock.pass(20_000)
    assert.deepEqual(socket.sent.at(-1), { type: 'ping', payload: { number: 2 } })
    socket.pong()
    clock.pass(20_000)
    assert.equal(state(), 'live')
    clock.pass(10_000)
    assert.deepEqual([state(), clock.due.length], ['waiting', 1])
    const states: string[] = []
    live(duet).onState(({ state }) => states.push(state))
    duet.close()
    assert.deepEqual([clock.due, states], [[], ['idle']])
  })

  for (const isOpened of [true, false])
    it(`is closed if it is not ${isOpened ? 'accepted by the service' : 'even opened'} in time`, async () => {
      const { clock, socket, state } = await opened()
      if (isOpened) socket.onopen?.(undefined as never)
      clock.pass(10_000)
      assert.deepEqual([state(), socket.isClosed], ['waiting', true])
    })

  it('is closed after a message that the service never sends', async () => {
    const messages = [{ type: 'next', id: '1' }, { type: 'error', id: '1', payload: {} }, { type: 'connection_ack' }]
    for (const text of ['no JSON', 'null', ...messages.map(each => JSON.stringify(each))]) {
      const { socket, state } = await accepted()
      socket.onmessage?.({ data: text })
      assert.equal(state(), 'waiting', text)
    }
  })

  it('does not resubscribe forever if the service refuses a position that the client never received', async () => {
    const { socket, errors, received } = await accepted()
    const payload = [{ message: 'Unknown', extensions: { code: 'POSITION_UNKNOWN' } }]
    socket.say({ type: 'error', id: '1', payload })
    assert.deepEqual([errors[0]?.code, errors[0]?.body, received], ['POSITION_UNKNOWN', payload, ['start']])
    assert.equal(socket.subscribed.length, 1)
  })

  it('answers pings of the service, and takes answers without a question', async () => {
    const { socket, state } = await accepted()
    socket.say({ type: 'pong' })
    assert.equal(state(), 'live')
    socket.say({ type: 'ping', payload: { a: 1 } })
    assert.deepEqual(socket.sent.at(-1), { type: 'pong', payload: { a: 1 } })
  })

  it('is reopened after pauses that grow with each failure, and are short again after a stable connection', async () => {
    const { clock, duet, listen, socket, next } = await opened()
    const pauses: number[] = []
    let current = socket
    for (let failures = 0; failures < 10; failures++) {
      current.onclose?.({ code: 1006 })
      pauses.push(Math.min(...clock.due))
      assert.deepEqual(live(duet).state, { state: 'waiting', retryAt: clock.now() + (pauses.at(-1) ?? 0) })
      current = await next()
    }
    for (const [index, pause] of pauses.entries()) {
      const most = Math.min(250 * 2 ** index, 30_000)
      assert.ok(pause >= most / 2 && pause <= most, `${index}: ${pause}`)
    }
    current.accept()
    clock.pass(10_000)
    current.onclose?.({ code: 1006 })
    assert.ok(Math.min(...clock.due) >= 15_000, 'ten seconds are not stable')
    current = await next()
    current.accept()
    clock.pass(15_000)
    listen()
    current.pong() // a later subscription does not make the connection a new one
    current.onclose?.({ code: 1001 })
    assert.ok(Math.min(...clock.due) <= 250)
    current = await next()
    current.onclose?.({ code: 1006 })
    assert.ok(Math.min(...clock.due) >= 250, 'they grow again if the next attempt fails')
  })

  it('subscribes again after pauses that grow with each refusal, and are short again after an event', async () => {
    const { clock, listen, socket } = await accepted()
    const refuse = () => {
      socket.refuse('RATE_LIMITED')
      const pause = clock.due.find(milliseconds => milliseconds > 1000 && milliseconds !== 20_000) ?? assert.fail()
      clock.pass(pause)
      socket.pong()
      return pause - 1000
    }
    const pauses = [refuse(), refuse(), refuse(), refuse()]
    for (const [index, pause] of pauses.entries()) assert.ok(pause >= 125 * 2 ** index && pause <= 250 * 2 ** index)
    socket.next('post')
    assert.ok(refuse() <= 250)
    const { subscription: other } = listen()
    const { length } = socket.subscribed
    socket.refuse('RATE_LIMITED')
    other.close()
    clock.pass(2000)
    assert.equal(socket.subscribed.length, length, 'a closed one does not')
  })

  it('resumes after the last event, and reads the data again if the database has lost events', async () => {
    const { socket, next, received } = await accepted()
    socket.next('post', 'p1')
    socket.onclose?.({ code: 1001 })
    const second = await next()
    second.accept()
    assert.deepEqual(second.begun, { after: 'p1' })
    second.next('post', 'p1', socket.subscribed[0]?.id) // it answers the first attempt, so it is ignored
    second.onclose?.({ code: 1012 })
    const third = await next()
    third.accept()
    assert.deepEqual([third.begun, received], [{ positions: true }, ['start', 'post', 'gap']])
  })

  it('begins where the first socket was accepted, also on the next socket, but not after a loss of events', async () => {
    const { listen, socket, next, received } = await accepted('p0')
    assert.deepEqual(socket.sent[0], { type: 'connection_init', payload: { positions: true } })
    assert.deepEqual(socket.begun, { after: 'p0' })
    const joined = listen()
    assert.deepEqual(socket.begun, { positions: true }, 'who joins later begins later')
    joined.subscription.close()
    socket.onclose?.({ code: 1006 })
    const second = await next()
    second.accept('p7')
    assert.deepEqual([second.begun, received], [{ after: 'p0' }, ['start']])
    second.onclose?.({ code: 1012 })
    const third = await next()
    third.accept('p5')
    assert.deepEqual([third.begun, received], [{ after: 'p5' }, ['start', 'gap']])
  })

  it('reports that events may be missing if the service told no position before it was cut off', async () => {
    const { socket, next, received } = await accepted()
    socket.onclose?.({ code: 1006 })
    const second = await next()
    second.accept()
    assert.deepEqual([second.begun, received], [{ positions: true }, ['start', 'gap']])

    const early = await opened()
    early.socket.onopen?.(undefined as never)
    early.socket.say({ type: 'connection_ack', payload: { position: 'p0' } })
    early.socket.onclose?.({ code: 1012 }) // before the service has read the subscription
    const later = await early.next()
    later.accept('p1')
    assert.deepEqual(early.received, ['start'])
  })

  it('stops at the limit of buffered events of an iterator, and resumes after the last one', async () => {
    const client = await accepted()
    const { socket } = client
    const events = client.events()
    const id = socket.subscribed.at(-1)?.id
    // The events after the thousandth were sent before the service got the complete message.
    for (let number = 1; number <= 1010; number++) socket.next(`post ${number}`, `p${number}`)
    assert.deepEqual(socket.sent.at(-1), { type: 'complete', id })
    const titles: string[] = []
    for await (const { postAdded: post } of events) {
      if (titles.push(post.title) === 1002) break
      if (titles.length !== 1000) continue
      assert.equal(socket.subscribed.length, 2, 'nothing is requested while events wait')
      setImmediate(() => {
        assert.deepEqual(socket.begun, { after: 'p1000' })
        for (const number of [1001, 1002]) setImmediate(() => socket.next(`post ${number}`, `p${number}`))
      })
    }
    assert.deepEqual(titles.slice(-3), ['post 1000', 'post 1001', 'post 1002'])
    assert.equal(socket.subscribed.length, 3)
  })

  it('gives one event to each reader of an iterator, and none after it was left', async () => {
    const client = await accepted()
    const { socket } = client
    const events = client.events({ after: 'p1' })
    assert.deepEqual(socket.begun, { after: 'p1' })
    const titleOf = async (read: Promise<IteratorResult<PostAdded>>) => (await read).value?.postAdded.title
    const reads = [events.next(), events.next()].map(titleOf)
    for (const title of ['one', 'two']) {
      socket.next(title)
      assert.equal(await soon(reads.shift() ?? assert.fail()), title)
    }
    for (const title of ['three', 'four']) socket.next(title)
    assert.equal(await titleOf(events.next()), 'three')
    const left = [events.return?.(), events.next()]
    assert.deepEqual(await soon(Promise.all(left)), [over, over])
    assert.deepEqual(socket.sent.at(-1), { type: 'complete', id: socket.subscribed.at(-1)?.id }, 'the service is told')
  })

  it('begins the iterator of a selection where the caller says, and tells the caller of a gap', async () => {
    const { duet, socket } = await accepted()
    const told: string[] = []
    iterate(duet, { postAdded: { title: true } }, { after: 'p1', onReadAnew: why => told.push(why) })
    assert.deepEqual(socket.begun, { after: 'p1' })
    socket.refuse('POSITION_UNKNOWN')
    socket.pong(-2)
    assert.deepEqual(told, [], 'not by the answer to the refused attempt')
    socket.pong()
    assert.deepEqual([told, socket.subscribed.length], [['gap'], 3])
  })

  it('ends all readers of an iterator that wait when it ends, and gives the events before its error', async () => {
    const { events, socket } = await accepted()
    const ended = events()
    for (let used = 0; used < 1000; used++) {
      socket.next('used at once')
      await ended.next()
    }
    assert.ok(!socket.sent.some(({ type }) => type === 'complete'), 'many events, but never many at a time')
    const reads = [ended.next(), ended.next(), ended.next()]
    socket.next('the last one')
    socket.say({ type: 'complete', id: socket.subscribed.at(-1)?.id })
    const [first, ...others] = await soon(Promise.all(reads))
    assert.deepEqual([first?.value?.postAdded.title, others], ['the last one', [over, over]])
    const left = events()
    const read = left.next()
    await left.return?.()
    assert.deepEqual(await soon(read), over)
    const failed = events()
    socket.next('before the error')
    socket.refuse('FORBIDDEN')
    assert.equal((await soon(failed.next())).value.postAdded.title, 'before the error')
    await assert.rejects(soon(failed.next()), { kind: 'forbidden' })
    assert.deepEqual(await soon(failed.next()), over, 'it is told once')
    const unread = events()
    socket.refuse('FORBIDDEN')
    await unread.return?.()
    assert.deepEqual(await soon(unread.next()), over, 'its error came before it was left')
  })

  it('sends the text and the variables of each document, also of a selection', async () => {
    const { duet, socket } = await accepted()
    const query = 'subscription ($id: ID!) { commentAdded(postId: $id) { text } }'
    const [document, variables] = [{ loc: { source: { body: query } } }, { id: '7' }]
    const sent = () => socket.subscribed.at(-1)?.payload
    live(duet).subscribe(document, variables, { onData: () => {} })
    assert.deepEqual(sent(), { query, variables, extensions: { positions: true } })
    live(duet).iterate(document, variables, { after: 'p1' })
    assert.deepEqual(sent(), { query, variables, extensions: { after: 'p1' } })
    const selected = { commentAdded: { $: { postId: '8' }, text: true } } as const
    for (const begin of [() => subscribe(duet, selected, { onData: () => {} }), () => iterate(duet, selected)]) {
      begin()
      assert.partialDeepStrictEqual(sent(), { variables: { postId1: '8' } })
    }
  })

  it('sends nothing before it is accepted, then each subscription once, and asks when it was read', async () => {
    const { duet, listen, state } = connected()
    const socket = () => {
      live(duet).retryNow()
      return newest()
    }
    const told: string[] = []
    const full = live(duet).iterate<PostAdded>(postAdded, {}, { after: 'p0', onReadAnew: why => told.push(why) })
    const first = await socket()
    first.accept()
    for (let number = 1; number <= 1000; number++) first.next('post', `p${number}`)
    first.onclose?.({ code: 1012 })
    const second = await socket()
    second.accept()
    const typesOf = ({ sent }: FakeSocket) => sent.map(({ type }) => type)
    const withEnough = [typesOf(second), state(), told]
    assert.deepEqual(withEnough, [['connection_init', 'ping'], 'live', []], 'the only subscription has enough events')
    second.onclose?.({ code: 1006 })
    const third = await socket()
    const others = [listen(), listen()]
    for (let used = 0; used < 1000; used++) await full.next()
    const next = full.next()
    assert.deepEqual(third.sent, [])
    third.accept()
    assert.deepEqual(typesOf(third), ['connection_init', 'subscribe', 'subscribe', 'subscribe', 'ping'])
    assert.deepEqual([third.begun, told], [{ positions: true }, ['gap']])
    for (const { received } of others) assert.deepEqual(received, ['start'])
    third.next('after the gap', 'p2', third.subscribed[0]?.id)
    assert.equal((await soon(next)).value?.postAdded.title, 'after the gap')
  })

  it('has the new state when the application hears of a start, an end or an error', async () => {
    for (const finish of [
      (socket: FakeSocket) => socket.say({ type: 'complete', id: '1' }),
      (socket: FakeSocket) => socket.refuse('FORBIDDEN'),
      (_socket: FakeSocket, duet: Duet) => duet.close(),
    ]) {
      const { duet, listen, state } = connected()
      const states: string[] = []
      const note = () => void states.push(state())
      listen({ onData: note, onReadAnew: note, onEnd: note, onError: note })
      const socket = await newest()
      socket.accept()
      finish(socket, duet)
      assert.deepEqual([states, socket.isClosed], [['live', 'idle'], true])
    }
  })
})

const over = { done: true, value: undefined }
