import assert from 'node:assert/strict'
import { Agent, request } from 'node:http'
import { test } from 'node:test'
import { startTestApp } from '../support/app.ts'
import { inForm, notInQuick } from '../support/form.ts'
import { createMember, createUser, someItems } from '../support/rest.ts'
import { type Register, staleReads } from './registers.ts'

const clients = 8
const writes = inForm(5, 200)

/** Clients with one connection each. A connection stays with the thread that accepted it. */
function connect(port: number) {
  const agents = Array.from({ length: clients }, () => new Agent({ keepAlive: true, maxSockets: 1 }))
  const send = (client: number, line: string, body?: unknown, token?: string): Promise<string> => {
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    const [method, path] = line.split(' ')
    const headers = {
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    }
    request({ port, host: '127.0.0.1', method, path, headers, agent: agents[client] }, async response => {
      let text = ''
      for await (const part of response.setEncoding('utf8')) text += part
      resolve(text)
    })
      .on('error', reject)
      .end(body === undefined ? undefined : JSON.stringify(body))
    return promise
  }
  return { send, [Symbol.dispose]: () => void agents.map(agent => agent.destroy()) }
}

async function registersOf(app: Awaited<ReturnType<typeof startTestApp>>, { send }: ReturnType<typeof connect>) {
  const [user, buyer, author] = [await createUser(app), await createUser(app), await createMember(app)]
  const mutate = (query: string, client: number) => send(client, 'POST /graphql', { query }, author.token)
  const created = await mutate('mutation { createPost(title: "0", content: "C") { id } }', 0)
  const { id } = JSON.parse(created).data.createPost
  const registers: Register[] = [
    {
      name: 'a user',
      write: async (value, client) => void (await send(client, `PATCH /users/${user.id}`, { age: value })),
      read: async client => JSON.parse(await send(client, `GET /users/${user.id}`)).age ?? 0,
    },
    {
      name: 'the orders of a user',
      write: async (_value, client) => {
        await send(client, `POST /users/${buyer.id}/orders`, { items: someItems() })
      },
      read: async client => JSON.parse(await send(client, `GET /users/${buyer.id}/orders?limit=1000`)).length,
    },
    {
      name: 'a post',
      write: async (value, client) =>
        void (await mutate(`mutation { updatePost(id: "${id}", title: "${value}") { id } }`, client)),
      read: async client => {
        const answer = await send(client, 'POST /graphql', { query: `{ post(id: "${id}") { title } }` })
        return Number(JSON.parse(answer).data.post.title)
      },
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
  assert.deepEqual(await staleReads(registers, clients, writes), [])
  for (const register of registers) assert.equal(await register.read(0), writes, register.name)
  const serving = new Set(app.logs.map(({ thread }) => thread).filter(Boolean))
  assert.deepEqual([...serving].sort(), [1, 2], 'both threads have served')
})
