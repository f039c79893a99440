import { read } from '../support/graphql.ts'
import { bodyOf, createOrder, logIn, send } from '../support/rest.ts'
import type { Random } from './values.ts'

/** The data that requests refer to in one round. Requests may delete any of it, so each round adds new data. */
export interface World {
  /** The token of a user that exists, unless a request deletes it by chance. */
  readonly token: string
  /** The token of a user for requests that may revoke it. */
  readonly spareToken: string
  readonly login: { readonly email: string; readonly password: string }
  /** The id of a row in the collection of this path. It depends only on the round and on the random numbers. */
  idFor(path: string, random: Random): number
}

/** Creates a user with some data to read, change and delete. */
export async function createTestData(url: string, round: number): Promise<World> {
  const id = 900_000 + 2 * round
  const token = await join(url, id)
  for (const name of ['To pay', 'To cancel']) await createOrder({ url }, id, [{ name, quantity: 2, price: 5 }])
  const create = (name: string) => `${name}: createPost(title: "A", content: "B") { id }`
  const text = `mutation { ${create('a')} ${create('b')} }`
  const { a } = await read<{ a: { id: string } }>({ url }, text, { token })
  await read({ url }, `mutation { addComment(postId: "${a.id}", text: "E") { id } }`, { token })
  return {
    token,
    spareToken: await join(url, id + 1),
    login: loginOf(id),
    idFor: (path, random) => {
      if (path.startsWith('/users')) return random.chance(0.2) ? random.between(1, 5) : random.between(800_001, 800_004)
      const latest = latestOf(path, round)
      // Higher ids are chosen more often, because fewer requests may have deleted those rows.
      return latest - Math.floor(random.next() ** 2 * latest)
    },
  }
}

/** Creates a user and logs in. */
async function join(url: string, id: number): Promise<string> {
  const { email } = bodyOf(await send({ url }, `PUT /users/${id}`, { name: 'Fuzz', ...loginOf(id) }), 201)
  return await logIn({ url }, email, password)
}

const loginOf = (id: number): World['login'] => ({ email: `fuzz-${id}@example.com`, password })

/** A text that must not appear in the log. */
export const password = 'fuzz-password-of-somebody'

/** An estimate of the latest id: demo data, the initial data of each round, and rows that its requests create. */
function latestOf(path: string, round: number): number {
  if (path.startsWith('/payments')) return 1 + round
  return path.startsWith('/orders') ? 6 + 2 * round : 20 + 2 * round
}
