/**
 * What users, posts and comments consist of, said once: the compiler of selections, the guard of large answers, the rule
 * about private fields and the check of `api/schema.graphql` all read it here.
 */
export interface Entity {
  /** All of them together. */
  readonly collection: string
  readonly fields: Readonly<Record<string, Field>>
  readonly relations: Readonly<Record<string, Relation>>
}

export interface Field {
  readonly type: 'id' | 'text' | 'integer' | 'instant'
  /** It may be absent. */
  readonly optional?: true
  /** A text of up to 64 Ki characters: how large an answer is depends on these. */
  readonly long?: true
  /** Only admins and the user itself may see it under the policy `enforced`. */
  readonly private?: true
}

export interface Relation {
  readonly to: EntityName
  /** `one`: this entity holds the other's id in `by`. `many`: the others hold the id of this one in `by`. */
  readonly kind: 'one' | 'many'
  /** At the top, where nothing relates to anything, one is named by its id, and many are all there are. */
  readonly by?: string
  /** Of many, by their ids. */
  readonly order?: 'asc' | 'desc'
}

export type EntityName = 'User' | 'Post' | 'Comment'

export const entities: Readonly<Record<EntityName, Entity>> = {
  User: {
    collection: 'users',
    fields: {
      id: { type: 'id' },
      name: { type: 'text' },
      email: { type: 'text', private: true },
      avatar: { type: 'text', optional: true },
      createdAt: { type: 'instant' },
    },
    relations: { posts: { to: 'Post', kind: 'many', by: 'authorId', order: 'desc' } },
  },
  Post: {
    collection: 'posts',
    fields: {
      id: { type: 'id' },
      title: { type: 'text' },
      content: { type: 'text', long: true },
      likes: { type: 'integer' },
      publishedAt: { type: 'instant', optional: true },
    },
    relations: {
      author: { to: 'User', kind: 'one', by: 'authorId' },
      comments: { to: 'Comment', kind: 'many', by: 'postId', order: 'asc' },
    },
  },
  Comment: {
    collection: 'comments',
    fields: { id: { type: 'id' }, text: { type: 'text', long: true } },
    relations: { author: { to: 'User', kind: 'one', by: 'authorId' } },
  },
}

/** Where every read begins. */
export const roots: Readonly<Record<string, Relation>> = {
  user: { to: 'User', kind: 'one' },
  me: { to: 'User', kind: 'one' },
  post: { to: 'Post', kind: 'one' },
  comment: { to: 'Comment', kind: 'one' },
  users: { to: 'User', kind: 'many', order: 'asc' },
  posts: { to: 'Post', kind: 'many', order: 'desc' },
}

const named = (flag: 'long' | 'private'): ReadonlySet<string> =>
  new Set(
    Object.values(entities).flatMap(({ fields }) => Object.keys(fields).filter(name => fields[name]?.[flag] === true)),
  )

export const longFields = named('long')
export const privateFields = named('private')
