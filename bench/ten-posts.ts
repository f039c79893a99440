import type { Selection } from '../src/core/selection.ts'

/** The query that the benchmarks ask: ten posts with their authors, their comments, and the comments' authors. */
export const tenPosts = `{
  posts(limit: 10) { id title content likes publishedAt author { id name avatar } comments { id text author { name } } }
}`

const values = (...names: string[]) => names.map(name => ({ kind: 'value', key: name, name }) as const)
const author = (...names: string[]) =>
  ({ kind: 'one', key: 'author', name: 'author', id: undefined, fields: values(...names) }) as const
const list = (name: string, limit: number) =>
  ({
    kind: 'many',
    key: name,
    name,
    limit,
    offset: limit + 1,
    after: undefined,
    publishedAfter: undefined,
    publishedBefore: undefined,
  }) as const

/** The same as the store is asked. */
export const tenPostsSelection: Selection = {
  fields: [
    {
      ...list('posts', 0),
      fields: [
        ...values('id', 'title', 'content', 'likes', 'publishedAt'),
        author('id', 'name', 'avatar'),
        { ...list('comments', 2), fields: [...values('id', 'text'), author('name')] },
      ],
    },
  ],
}

/** The values of its slots, for one page or another. */
export function tenPostsValues(page = 0): readonly number[] {
  return [10, 10 * page, 10, 0]
}

/** As a client sends it. */
export function tenPostsRequest(): string {
  return requestFor({ query: tenPosts })
}

/** As clients send it who turn pages, each another one. The header is for servers that do not understand the body. */
export function pageRequests(pages: number): () => string {
  const query = `query ($offset: Int) ${tenPosts.replace('limit: 10', 'limit: 10, offset: $offset')}`
  const requests = Array.from({ length: pages }, (_, page) =>
    requestFor({ query, variables: { offset: 10 * page } }, `X-Page: ${page}`),
  )
  let next = 0
  return () => requests[next++ % pages] ?? ''
}

export function requestFor(asked: object, ...headers: string[]): string {
  const body = JSON.stringify(asked)
  const head = ['POST /graphql HTTP/1.1', 'Host: 127.0.0.1', 'Content-Type: application/json', ...headers]
  return [...head, `Content-Length: ${Buffer.byteLength(body)}`, '', body].join('\r\n')
}
