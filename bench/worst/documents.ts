import { getIntrospectionQuery } from 'graphql'
import { type Candidate, operation, repeat } from './candidates.ts'

/** Documents whose text causes the work: introspection, and documents that are refused only after all of them is read. */
export function documents(): readonly Candidate[] {
  const all: [string, string][] = [['what tools ask of the schema', `${getIntrospectionQuery()} # TAG`]]
  const add = (name: string, text: string) => all.push([name, text])
  const described = 'types { fields { name description args { name description } } }'
  for (const times of [1, 2, 5, 10, 20, 33]) {
    add(`${times} x all types`, `{ TAG: __schema { ${repeat(times, at => `a${at}: ${described}`)} } }`)
  }
  for (const names of [50, 100, 150, 250, 560]) {
    add(`types, ${names} names each`, `{ TAG: __schema { types { ${repeat(names, at => `a${at}: kind`)} } } }`)
  }
  const bomb = (size: number, times: number, type: string, leaf: string) =>
    `${repeat(size, n => `fragment F${n} on ${type} { ${repeat(times, () => `...F${n + 1}`)} }`)} fragment F${size} on ${type} { ${leaf} }`
  add('a bomb of fragments', `{ TAG: posts(limit: 0) { ...F0 } } ${bomb(150, 4, 'Post', 'id')}`)
  add('a bomb of fragments in a list of one', `{ TAG: posts(limit: 1) { ...F0 } } ${bomb(9, 2, 'Post', 'content')}`)
  add('a chain of fragments', `{ TAG: posts(limit: 1) { ...F0 } } ${bomb(240, 1, 'Post', 'id')}`)
  add('a bomb about the schema', `{ TAG: __schema { types { ...F0 } } } ${bomb(100, 2, '__Type', 'name')}`)
  add('conflicts', `{ TAG: posts { ${repeat(600, at => `a: ${at % 2 ? 'id' : 'title'}`)} } }`)
  add('unknown fields', `{ TAG: posts { ${repeat(1900, at => `contend${at}`)} } }`)
  add('unknown arguments', `{ TAG: posts(${repeat(490, at => `limi${at}: 1`)}) { id } }`)
  add('unknown fragments', `{ TAG: posts { ${repeat(900, at => `...F${at}`)} } }`)
  add('unused fragments', `{ TAG: __typename } ${repeat(240, at => `fragment F${at} on Post { id }`)}`)
  add('one fragment, many times', `{ TAG: posts(limit: 1) { ${repeat(950, () => '...F')} } } fragment F on Post { id }`)
  add('inline fragments', `{ TAG: posts(limit: 1) { ${repeat(390, () => '... { id }')} } }`)
  add(
    'the same lists, put together',
    `{ TAG: __typename ${repeat(120, () => 'posts(limit: 1) { author { posts(limit: 1) { id } } }')} }`,
  )
  add(
    'fragments that must be put together',
    `{ TAG: posts(limit: 1) { ${repeat(60, at => `...F${at}`)} } } ${repeat(60, at => `fragment F${at} on Post { author { ${repeat(20, n => `a${n}: name`)} } }`)}`,
  )
  add(
    'conditions',
    `query ($b: Boolean!) { TAG: posts(limit: 1) { ${repeat(240, at => `a${at}: id @include(if: $b)`)} } }`,
  )
  add(
    'variables',
    `query (${repeat(240, at => `$v${at}: Int = 1`)}) { TAG: __typename ${repeat(190, at => `a${at}: posts(limit: $v${at}) { id }`)} }`,
  )
  add('a long string', `{ TAG: post(id: "${'\\u0041'.repeat(10_000)}") { id } }`)
  add('a long comment', `{ TAG: __typename } #${'x'.repeat(65_000)}`)
  const variables = { b: true, c: Array.from({ length: 100_000 }, () => [[1]]) }
  return all.map(([name, text]) => operation(name, text, name === 'conditions' ? variables : undefined))
}

/** Requests of the HTTP interface. */
export function requests(): readonly Candidate[] {
  const get = (path: string): Candidate => ({ name: `GET ${path}`, path, method: 'GET', text: undefined })
  const post = (name: string, path: string, text: string): Candidate => ({ name, path, method: 'POST', text })
  const items = Array.from({ length: 100 }, () => ({ name: 'x'.repeat(320), quantity: 1, price: 1 }))
  const user = {
    name: 'x'.repeat(320),
    email: `${'x'.repeat(300)}@example.com`,
    avatar: `https://e.com/${'x'.repeat(2000)}`,
  }
  return [
    get('/users?limit=1000'),
    get('/users?limit=1000&offset=1000'),
    get('/users?limit=1&offset=100000'),
    get(`/users?limit=1000&q=${encodeURIComponent('漢漢')}`),
    get('/users/1/orders?limit=1000'),
    get('/users/1/orders?limit=1&offset=999'),
    get('/openapi.json'),
    get('/metrics'),
    get('/health/ready'),
    get('/docs'),
    post('an order of 100 items', '/users/1/orders', JSON.stringify({ items })),
    post('a user', '/users', JSON.stringify(user)),
    post(
      'a user with a password',
      '/users',
      JSON.stringify({ ...user, email: 'TAG@example.com', password: 'a long password' }),
    ),
    post('a login', '/tokens', JSON.stringify({ email: 'user1@example.com', password: 'a wrong one' })),
    post('1 MB of brackets', '/users', '['.repeat(1_000_000)),
    post('1 MB of lists', '/users', `{"name": ${'['.repeat(500_000)}${']'.repeat(500_000)}}`),
    post('1 MB of keys', '/users', `{${Array.from({ length: 80_000 }, (_, at) => `"k${at}": 1`).join(',')}}`),
    post('1 MB of numbers', '/graphql', `{"query": "{ __typename }", "variables": {"a": [${'1,'.repeat(500_000)}1]}}`),
    post('1 MB in an escaped text', '/graphql', `{"query": "${'\\u0041'.repeat(170_000)}"}`),
    post(
      '1 MB as the name of an operation',
      '/graphql',
      `{"query": "query A{id} query B{id}", "operationName": "${'x'.repeat(1_000_000)}"}`,
    ),
  ]
}

/** What can be done once only: it takes away what the others read. */
export function removals(latest: number, author: number): readonly Candidate[] {
  return [
    {
      ...operation('delete the post with 100,000 comments', `mutation { TAG: deletePost(id: ${latest}) }`),
      once: true,
    },
    {
      name: 'delete the author of 100,000 posts',
      path: `/users/${author}`,
      method: 'DELETE',
      text: undefined,
      once: true,
    },
  ]
}
