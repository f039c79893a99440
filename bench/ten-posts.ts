import type { Selection } from '../src/core/selection.ts'

/** The query that the benchmarks ask: ten posts with their authors, their comments, and the comments' authors. */
export const tenPosts = `{
  posts(limit: 10) { id title content likes publishedAt author { id name avatar } comments { id text author { name } } }
}`

const values = (...names: string[]) => names.map(name => ({ kind: 'value', key: name, name }) as const)
const author = (...names: string[]) =>
  ({ kind: 'one', key: 'author', name: 'author', id: undefined, wishes: values(...names) }) as const
const list = (name: string, limit: number) =>
  ({ kind: 'many', key: name, name, limit, offset: limit + 1, after: undefined, before: undefined }) as const

/** The same as the store is asked. */
export const tenPostsSelection: Selection = {
  wishes: [
    {
      ...list('posts', 0),
      wishes: [
        ...values('id', 'title', 'content', 'likes', 'publishedAt'),
        author('id', 'name', 'avatar'),
        { ...list('comments', 2), wishes: [...values('id', 'text'), author('name')] },
      ],
    },
  ],
}

export const tenPostsValues = [10, 0, 10, 0]

/** As a client sends it. */
export function tenPostsRequest(): string {
  const body = JSON.stringify({ query: tenPosts })
  const head = ['POST /graphql HTTP/1.1', 'Host: 127.0.0.1', 'Content-Type: application/json']
  return [...head, `Content-Length: ${Buffer.byteLength(body)}`, '', body].join('\r\n')
}
