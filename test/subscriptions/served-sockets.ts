import assert from 'node:assert/strict'
import { createServer, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import type { AuthenticatedUser } from '../../src/core/tokens/operations.ts'
import { Conversation, type ConversationParts } from '../../src/graphql/live/protocol.ts'
import type { Wire } from '../../src/graphql/live/run.ts'
import { Sockets, type SocketsParts } from '../../src/graphql/live/sockets.ts'
import { RequestLog } from '../../src/http/request-log.ts'
import { Unread } from '../../src/http/unread.ts'
import { collectLogs } from '../support/logs.ts'
import { listen } from '../support/ports.ts'
import { clientFrame, upgradeLines } from '../support/sockets.ts'
import { testTimeoutMs } from '../support/wait.ts'
import { FanOutStage } from './fakes.ts'

/** A fake connection that records the sent messages. */
export class FakeWire implements Wire {
  readonly sent: unknown[] = []
  closed: [code: number, reason: string] | undefined

  ready(): undefined {}

  send(message: string): void {
    assert.equal(this.closed, undefined, message)
    this.sent.push(JSON.parse(message))
  }

  sendFrame(frame: Buffer): void {
    this.send(frame.subarray(frame.indexOf('{')).toString())
  }

  close(code: number, reason: string): void {
    assert.equal(this.closed, undefined)
    this.closed = [code, reason]
  }
}

function partsOver(stage: FanOutStage, parts: Partial<ConversationParts> = {}): ConversationParts {
  return {
    executor: stage.executor,
    fanOut: stage.fanOut,
    authenticate: async () => assert.fail('this server accepts no token'),
    isStillValid: async () => true,
    isKnownKey: () => true,
    client: 'a client',
    requestLog: new RequestLog(collectLogs().logger, {}),
    take: () => undefined,
    clock: { now: Date.now },
    initTimeoutMs: testTimeoutMs,
    observer: { ended() {} },
    report: error => stage.reported.push(error),
    ...parts,
  }
}

/** A conversation over a fake connection. */
export function converse(parts: Partial<ConversationParts> = {}, wire = new FakeWire(), authorization?: string) {
  const stage = new FanOutStage()
  const conversation = new Conversation(partsOver(stage, parts), wire, authorization)
  const say = (message: object) => conversation.receive(Buffer.from(JSON.stringify(message)))
  const begin = (id: string, query: string, variables = {}) =>
    say({ type: 'subscribe', id, payload: { query, variables } })
  return { stage, wire, conversation, say, begin, [Symbol.dispose]: () => conversation.closed() }
}

/** The user of a valid token. */
export function authenticated(id: number, expiresAt = Date.now() / 1000 + 1000): AuthenticatedUser {
  return { actor: { kind: 'user', id, role: 'member', tokenVersion: 'version' }, signedBy: 'key', expiresAt }
}

/** A connection whose client has stopped reading, so all written data waits. */
export class StuckStream extends Duplex {
  #done: (() => void) | undefined

  override _read(): void {}

  /** A write completes only when the test allows it. */
  override _write(_chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#done = done
  }

  setTimeout(): this {
    return this
  }

  setNoDelay(): this {
    return this
  }

  /** The client reads all waiting data, and nothing after that. */
  async drain(): Promise<void> {
    while (this.writableLength > 0) {
      const done = this.#done
      this.#done = undefined
      done?.()
      await turn()
    }
  }

  hear(message: object): void {
    this.push(clientFrame(JSON.stringify(message)))
  }
}

/** Sockets at any path, without the rest of the app. */
export async function serveSockets(stage: FanOutStage, parts: Partial<SocketsParts> = {}) {
  const sockets = new Sockets({
    ...partsOver(stage),
    takeFor: () => () => undefined,
    clientOf: () => 'a client',
    socketsPerClient: 1000,
    messagesPerSecond: 0,
    isAllowedOrigin: () => true,
    unread: new Unread(),
    observer: { closedForSlowness() {}, ended() {} },
    ...parts,
  })
  const streams: Duplex[] = []
  const accept = (request: IncomingMessage, stream: Duplex, head: Buffer) => {
    streams.push(stream)
    sockets.accept(request, { stream: stream as Socket, head, headers: [] })
  }
  const server = createServer()
  server.on('upgrade', accept)
  const port = await listen(server)
  return {
    sockets,
    /** The server's ends of the connections. */
    streams,
    port,
    url: `http://127.0.0.1:${port}`,
    /** Treats this stream as a connection that requested a WebSocket. */
    accept(stream: Duplex): void {
      const request = new IncomingMessage(stream as Socket)
      request.method = 'GET'
      for (const line of upgradeLines().slice(1)) {
        const [name = '', value] = line.split(': ')
        request.headers[name.toLowerCase()] = value
      }
      accept(request, stream, Buffer.alloc(0))
    },
    [Symbol.asyncDispose]: async () => {
      await sockets[Symbol.asyncDispose]()
      server.close()
    },
  }
}
