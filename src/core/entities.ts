/**
 * Describes the fields and relations of users, posts and comments in one place. Four parts read it: the compiler of
 * selections, the limit on large responses, the rule about private fields, and the check of `api/schema.graphql`.
 */
export interface Entity {
  /** The plural name. The store uses it as the name of the table. */
  readonly collection: string
  readonly fields: Readonly<Record<string, Field>>
  readonly relations: Readonly<Record<string, Relation>>
}

export interface Field {
  readonly type: 'id' | 'text' | 'integer' | 'instant'
  /** The field may be null. */
  readonly optional?: true
  /** While nothing else is stored, it has the value of this other field. */
  readonly or?: string
  /** A text of up to 64 Ki characters. The size of a response depends mainly on these fields. */
  readonly long?: true
  /** Under the policy `enforced`, only admins and the user itself may read it. */
  readonly private?: true
}

export interface Relation {
  readonly to: EntityName
  /** `one`: this entity has the id of the other one in `by`. `many`: the others have the id of this one in `by`. */
  readonly kind: 'one' | 'many'
  /** Absent in `roots`: there, `one` is selected by its own id, and `many` means all rows. */
  readonly by?: string
  /** For `many`: the sort order, by id. */
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
      commentCount: { type: 'integer' },
      publishedAt: { type: 'instant', optional: true },
      updatedAt: { type: 'instant', or: 'publishedAt' },
    },
    relations: {
      author: { to: 'User', kind: 'one', by: 'authorId' },
      comments: { to: 'Comment', kind: 'many', by: 'postId', order: 'asc' },
    },
  },
  Comment: {
    collection: 'comments',
    fields: {
      id: { type: 'id' },
      text: { type: 'text', long: true },
      createdAt: { type: 'instant' },
      updatedAt: { type: 'instant', or: 'createdAt' },
    },
    relations: {
      author: { to: 'User', kind: 'one', by: 'authorId' },
      post: { to: 'Post', kind: 'one', by: 'postId' },
    },
  },
}

/** The entry points of every read. */
export const roots: Readonly<Record<string, Relation>> = {
  user: { to: 'User', kind: 'one' },
  me: { to: 'User', kind: 'one' },
  post: { to: 'Post', kind: 'one' },
  comment: { to: 'Comment', kind: 'one' },
  users: { to: 'User', kind: 'many', order: 'asc' },
  posts: { to: 'Post', kind: 'many', order: 'desc' },
}

export const privateFields: ReadonlySet<string> = new Set(
  Object.values(entities).flatMap(({ fields }) => Object.keys(fields).filter(name => fields[name]?.private === true)),
)
