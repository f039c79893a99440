import { escapedIds, type Places, selectionsOfComments, selectionsOfPosts } from './selections.ts'

/** Something to try: an operation of GraphQL, or a request of the HTTP interface. */
export interface Candidate {
  readonly name: string
  readonly path: string
  readonly method: string
  /** The text of an operation, or a body. `TAG` in it is a name that no other request has, so that no cache knows it. */
  readonly text: string | undefined
  readonly variables?: Readonly<Record<string, unknown>>
  /** It cannot be done twice. */
  readonly once?: true
}

export const tagged = (text: string, tag: string) => text.replaceAll('TAG', tag)
/** The operation that is sent, with this name. */
export function sent({ path, method, text, variables }: Candidate, tag: string): { method: string; body?: unknown } {
  if (text === undefined) return { method }
  const body = tagged(text, tag)
  return { method, body: path === '/graphql' && !body.startsWith('{"query"') ? { query: body, variables } : body }
}

export const repeat = (times: number, part: (index: number) => string) =>
  Array.from({ length: times }, (_, at) => part(at)).join(' ')

export function operation(name: string, text: string, variables?: Candidate['variables']): Candidate {
  return { name, path: '/graphql', method: 'POST', text, ...(variables && { variables }) }
}

/** Operations written by hand, each as expensive as possible. */
export function queries(places: Places): readonly Candidate[] {
  const { author, longAuthor, escapedAuthor, latest, long, escaped } = places
  const all: [string, string][] = []
  const add = (name: string, text: string) => all.push([name, text])
  for (const field of ['id', 'title', 'content', 'publishedAt', '__typename']) {
    add(`1000 posts: ${field}`, `{ TAG: posts(limit: 1000) { ${field} } }`)
  }
  add('200 posts: all fields', '{ TAG: posts(limit: 200) { id title content likes publishedAt } }')
  add('1000 users', '{ TAG: users(limit: 1000) { avatar } }')
  add('200 users: all fields', '{ TAG: users(limit: 199) { id name email avatar createdAt } }')
  for (const outer of [1, 2, 5, 10, 20, 31, 50, 100, 200, 500, 1000]) {
    const inner = Math.floor(999 / outer)
    if (inner >= 1)
      add(`${outer} x ${inner} comments`, `{ TAG: posts(limit: ${outer}) { comments(limit: ${inner}) { text } } }`)
    const rest = inner - 5
    if (rest >= 1)
      add(
        `${outer} authors x ${rest} posts`,
        `{ TAG: posts(limit: ${outer}) { author { posts(limit: ${rest}) { content } } } }`,
      )
    const ranged = `posts(limit: ${outer}, publishedAfter: "2020-01-01T00:00Z", publishedBefore: "2027-01-01T00:00Z")`
    if (rest >= 1) add(`${outer} in a range`, `{ TAG: ${ranged} { author { posts(limit: ${rest}) { id } } } }`)
    const half = Math.floor(50_000 / outer)
    const skipping = `posts(limit: ${outer}, offset: 49000) { author { posts(limit: 1, offset: ${half}) { content } } }`
    if (outer <= 160) add(`${outer} that skip`, `{ TAG: ${skipping} }`)
  }
  add(
    'skip by publication',
    '{ TAG: posts(limit: 900, offset: 99000, publishedAfter: "2020-01-01T00:00Z") { content } }',
  )
  add('skip 99,000', '{ TAG: posts(limit: 999, offset: 99000) { content } }')
  for (const lists of [100, 190, 199, 400]) {
    const limit = Math.floor(999 / lists)
    add(`${lists} lists`, `{ TAG: __typename ${repeat(lists, at => `a${at}: posts(limit: ${limit}) { content }`)} }`)
    const offset = `limit: 1, offset: ${Math.floor(100_000 / lists)}`
    add(
      `${lists} lists that skip`,
      `{ TAG: __typename ${repeat(lists, at => `a${at}: posts(${offset}) { content }`)} }`,
    )
  }
  add('comments that are skipped', `{ TAG: post(id: ${latest}) { comments(limit: 900, offset: 99000) { text } } }`)
  for (const [name, selection] of selectionsOfPosts()) {
    add(`latest post: ${name}`, `{ TAG: post(id: ${latest}) { ${selection} } }`)
  }
  for (const aliases of [100, 120, 127, 128, 400, 900]) {
    const contents = repeat(aliases, at => `a${at}: content`)
    add(`${aliases} x a long content`, `{ TAG: post(id: ${long}) { ${contents} } }`)
    add(`${aliases} x an escaped content`, `{ TAG: post(id: ${escaped}) { ${contents} } }`)
  }
  for (const limit of [15, 16, 20, 21, 64, 100, 127, 128, 200]) {
    add(`${limit} long posts`, `{ TAG: user(id: ${longAuthor}) { posts(limit: ${limit}) { content } } }`)
    add(`${limit} escaped posts`, `{ TAG: user(id: ${escapedAuthor}) { posts(limit: ${limit}) { content } } }`)
  }
  add(
    'many posts by their ids',
    `{ TAG: __typename ${repeat(120, at => `a${at}: post(id: ${latest - at}) { content }`)} }`,
  )
  add(
    'many escaped posts by their ids',
    `{ TAG: __typename ${repeat(120, at => `a${at}: post(id: ${escapedIds(places, at)}) { content }`)} }`,
  )
  const contents = repeat(240, at => `a${at}: content`)
  add(
    '4 x 240 escaped contents by a fragment',
    `{ TAG: __typename ${repeat(4, at => `p${at}: post(id: ${escapedIds(places, at)}) { ...F }`)} }
     fragment F on Post { ${contents} }`,
  )
  add(
    'an author of authors',
    `{ TAG: user(id: ${author}) { posts(limit: 14) { author { posts(limit: 10) { author { name } } } } } }`,
  )
  return all.map(([name, text]) => operation(name, text))
}

export function mutations(places: Places): readonly Candidate[] {
  const { latest } = places
  const shown = selectionsOfPosts().map(([name, selection]) =>
    operation(`like, shown: ${name}`, `mutation { TAG: likePost(id: ${latest}) { ${selection} } }`),
  )
  const commented = selectionsOfComments().map(([name, selection]) =>
    operation(`comment, shown: ${name}`, `mutation { TAG: addComment(postId: ${latest}, text: "A") { ${selection} } }`),
  )
  const likes = operation(
    '160 likes',
    `mutation { TAG: __typename ${repeat(160, at => `a${at}: likePost(id: ${latest}) { id }`)} }`,
  )
  const create = (times: number) =>
    `mutation ($c: String!) { TAG: __typename ${repeat(times, at => `a${at}: createPost(title: "T", content: $c) { id }`)} }`
  return [
    ...shown,
    ...commented,
    likes,
    operation('15 posts of 64 KiB', create(15), { c: 'x'.repeat(65_536) }),
    operation('16 posts beyond 1 MiB', create(16), { c: 'x'.repeat(65_536) }),
    operation('160 posts of 6 KB', create(160), { c: 'x'.repeat(6_000) }),
  ]
}
