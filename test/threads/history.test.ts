import assert from 'node:assert/strict'
import { Agent, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { startTestApp } from '../support/app.ts'
import { inForm, notInQuick } from '../support/form.ts'
import { createMember, createUser, someItems } from '../support/rest.ts'

const writes = inForm(5, 200)
const clients = Array.from({ length: 8 }, (_, client) => client)

/** Something with a value that only grows: each write has a larger number. */
interface Register {
  readonly name: string
  write(value: number, client: number): Promise<unknown>
  read(client: number): Promise<number>
}

/** Clients with one connection each. A connection stays with the thread that accepted it. */
function connect(port: number) {
  const agents = clients.map(() => new Agent({ keepAlive: true, maxSockets: 1 }))
  const send = (client: number, line: string, body?: unknown, token?: string) => {
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    const [method, path] = line.split(' ')
    const headers = {
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    }
    request({ port, host: '127.0.0.1', method, path, headers, agent: agents[client] }, response =>
      resolve(text(response)),
    )
      .on('error', reject)
      .end(body === undefined ? undefined : JSON.stringify(body))
    return promise.then(JSON.parse)
  }
  return { send, [Symbol.dispose]: () => void agents.map(agent => agent.destroy()) }
}

async function registersOf(app: Awaited<ReturnType<typeof startTestApp>>, { send }: ReturnType<typeof connect>) {
  const [user, buyer, author] = [await createUser(app), await createUser(app), await createMember(app)]
  const query = (client: number, query: string) => send(client, 'POST /graphql', { query }, author.token)
  const { id } = (await query(0, 'mutation { createPost(title: "0", content: "C") { id } }')).data.createPost
  const registers: Register[] = [
    {
      name: 'a user',
      write: (age, client) => send(client, `PATCH /users/${user.id}`, { age }),
      read: async client => (await send(client, `GET /users/${user.id}`)).age ?? 0,
    },
    {
      name: 'the orders of a user',
      write: (_value, client) => send(client, `POST /users/${buyer.id}/orders`, { items: someItems() }),
      read: async client => (await send(client, `GET /users/${buyer.id}/orders?limit=1000`)).length,
    },
    {
      name: 'a post',
      write: (value, client) => query(client, `mutation { updatePost(id: "${id}", title: "${value}") { id } }`),
      read: async client => Number((await query(client, `{ post(id: "${id}") { title } }`)).data.post.title),
    },
  ]
  return registers
}

test('a write that was acknowledged on one connection is seen by the next read on any thread', {
  skip: notInQuick,
}, async () => {
  await using app = await startTestApp({ THREADS: '2', RATE_LIMIT_MAX: '0', LOGIN_LIMIT_MAX: '0' })
  using connections = connect(app.port)
  const registers = await registersOf(app, connections)
  const acknowledged = new Map<Register, number>()
  let running = registers.length
  const check = async (register: Register, client: number) => {
    const known = acknowledged.get(register) ?? 0
    const found = await register.read(client)
    assert.ok(found >= known, `${register.name}: ${found} was read after ${known} was acknowledged`)
  }
  const writer = async (register: Register, index: number) => {
    for (let value = 1; value <= writes; value++) {
      await register.write(value, (index + value) % clients.length)
      acknowledged.set(register, value)
      await Promise.all(clients.map(client => check(register, client))) // they begin at once, on other connections
    }
    running--
  }
  const reader = async (client: number) => {
    while (running > 0) for (const register of registers) await check(register, client)
  }
  await Promise.all([...registers.map(writer), ...clients.map(reader)])
  for (const register of registers) assert.equal(await register.read(0), writes, register.name)
  const serving = new Set(app.logs.map(({ thread }) => thread).filter(Boolean))
  assert.deepEqual([...serving].sort(), [1, 2], 'both threads have served')
})
