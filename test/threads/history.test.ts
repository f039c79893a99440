import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestApp } from '../support/app.ts'
import { inForm, notInQuick } from '../support/form.ts'
import { read } from '../support/graphql.ts'
import type { Served } from '../support/http.ts'
import { bodyOf, createMember, createOrder, createUser, send } from '../support/rest.ts'

const writes = inForm(5, 200)
/** Each has a connection of its own, because all of them ask at once. A connection stays with one thread. */
const clients = Array.from({ length: 8 })

/** Something with a value that only grows: each write has a larger number. */
interface Register {
  readonly name: string
  write(value: number): Promise<unknown>
  read(): Promise<number>
}

async function registersOf(app: Served): Promise<readonly Register[]> {
  const [user, buyer, author] = [await createUser(app), await createUser(app), await createMember(app)]
  const query = <Data>(text: string) => read<Data>(app, text, author)
  type Created = { readonly post: { readonly id: string; readonly title: string } }
  const { post } = await query<Created>('mutation { post: createPost(title: "0", content: "C") { id } }')
  return [
    {
      name: 'a user',
      write: age => send(app, `PATCH /users/${user.id}`, { age }),
      read: async () => bodyOf(await send(app, `GET /users/${user.id}`)).age ?? 0,
    },
    {
      name: 'the orders of a user',
      write: () => createOrder(app, buyer.id),
      read: async () => bodyOf<unknown[]>(await send(app, `GET /users/${buyer.id}/orders?limit=1000`)).length,
    },
    {
      name: 'a post',
      write: value => query(`mutation { updatePost(id: "${post.id}", title: "${value}") { id } }`),
      read: async () => Number((await query<Created>(`{ post(id: "${post.id}") { title } }`)).post.title),
    },
  ]
}

test('a write that was acknowledged on one connection is seen by the next read on any thread', {
  skip: notInQuick,
}, async () => {
  await using app = await startTestApp({ THREADS: '2', RATE_LIMIT_MAX: '0', LOGIN_LIMIT_MAX: '0' })
  const registers = await registersOf(app)
  const acknowledged = new Map<Register, number>()
  let running = registers.length
  const check = async (register: Register) => {
    const known = acknowledged.get(register) ?? 0
    const found = await register.read()
    assert.ok(found >= known, `${register.name}: ${found} was read after ${known} was acknowledged`)
  }
  const writer = async (register: Register) => {
    for (let value = 1; value <= writes; value++) {
      await register.write(value)
      acknowledged.set(register, value)
      await Promise.all(clients.map(() => check(register)))
    }
    running--
  }
  const reader = async () => {
    while (running > 0) for (const register of registers) await check(register)
  }
  await Promise.all([...registers.map(writer), ...clients.map(reader)])
  for (const register of registers) assert.equal(await register.read(), writes, register.name)
  const serving = new Set(app.logs.map(({ thread }) => thread).filter(Boolean))
  assert.deepEqual([...serving].sort(), [1, 2], 'both threads have served')
})
