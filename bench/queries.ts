import type { SelectedField, Selection } from '../src/core/selection.ts'

/** A GraphQL operation of the benchmark, and for reads the selection that Duet makes of it. */
export interface Operation {
  readonly query: string
  readonly selection?: Selection
  /** The values of the selection's slots, for the value of the operation's one variable. */
  readonly values?: (variable: number) => readonly (string | number | null)[]
}

const values = (...names: string[]) => names.map(name => ({ kind: 'value', key: name, name }) as const)
const author = (...names: string[]) =>
  ({ kind: 'one', key: 'author', name: 'author', id: undefined, fields: values(...names) }) as const
const list = (name: string, slots: { limit: number; offset?: number; after?: number }, fields: SelectedField[]) =>
  ({
    kind: 'many',
    key: name,
    name,
    limit: slots.limit,
    offset: slots.offset,
    after: slots.after,
    publishedAfter: undefined,
    publishedBefore: undefined,
    fields,
  }) as const

/** A page of posts with their authors, their comments, and the comments' authors. */
const nestedFields = 'id title content likes publishedAt author { id name avatar } comments { id text author { name } }'
const nested = (after: number | undefined, comments: number) =>
  list('posts', after === undefined ? { limit: 0, offset: 1 } : { limit: 0, after }, [
    ...values('id', 'title', 'content', 'likes', 'publishedAt'),
    author('id', 'name', 'avatar'),
    list('comments', { limit: comments, offset: comments + 1 }, [...values('id', 'text'), author('name')]),
  ])

export const operations = {
  point: {
    query: 'query ($id: ID!) { post(id: $id) { id title likes author { name } } }',
    selection: {
      fields: [
        { kind: 'one', key: 'post', name: 'post', id: 0, fields: [...values('id', 'title', 'likes'), author('name')] },
      ],
    },
    values: id => [id],
  },
  list: {
    query: 'query ($after: ID) { posts(limit: 20, after: $after) { id title likes publishedAt } }',
    selection: { fields: [list('posts', { limit: 0, after: 1 }, values('id', 'title', 'likes', 'publishedAt'))] },
    values: after => [20, after],
  },
  nested: {
    query: `query ($after: ID) { posts(limit: 10, after: $after) { ${nestedFields} } }`,
    selection: { fields: [nested(1, 2)] },
    values: after => [10, after, 10, 0],
  },
  nestedOffset: {
    query: `query ($offset: Int) { posts(limit: 10, offset: $offset) { ${nestedFields} } }`,
    selection: { fields: [nested(undefined, 2)] },
    values: offset => [10, offset, 10, 0],
  },
  wide: {
    query: `query ($after: ID) {
      posts(limit: 90, after: $after) { id title content likes publishedAt author { name } } }`,
    selection: {
      fields: [
        list('posts', { limit: 0, after: 1 }, [
          ...values('id', 'title', 'content', 'likes', 'publishedAt'),
          author('name'),
        ]),
      ],
    },
    values: after => [90, after],
  },
  like: { query: 'mutation ($id: ID!) { likePost(id: $id) { id likes } }' },
} as const satisfies Readonly<Record<string, Operation>>

/** Too deep for every server here. The counter in its name makes each document a new one. */
export const refused = `query Q@@@@@@@@@@ {
  posts { author { posts { author { posts { author { posts { author { name } } } } } } } }
}`
