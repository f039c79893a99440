import { isDuetError, type Schema, type User } from '../../../client/src/index.ts'
import { api } from '../client.ts'
import { keptPage, type ReadList } from './pages.ts'

/** The page of the list of users. */
export const userPage = keptPage<User>()

/** The service searches for texts of this length. */
export const searchLength = { least: 2, most: 100 }

/** A user, or nothing if it is absent or not for this reader. */
export async function findUser(id: number): Promise<User | undefined> {
  try {
    return await api.users.get(id)
  } catch (error) {
    if (isDuetError(error, 'notFound') || isDuetError(error, 'forbidden')) return undefined
    throw error
  }
}

/** A post in the list of its author. */
export interface UserPost extends Pick<Schema.Post, 'title' | 'likes' | 'commentCount' | 'publishedAt'> {
  readonly id: number
}

interface Written {
  readonly createdAt: string
  readonly posts: readonly (Omit<UserPost, 'id'> & { readonly id: string })[]
}

const written = `query Written($id: ID!, $limit: Int!, $after: ID) {
  user(id: $id) { createdAt posts(limit: $limit, after: $after) { id title likes commentCount publishedAt } }
}`

/** The posts of a user, newest first. The same answer tells when the user joined. */
export function postsOf(userId: number, onJoined: (at: string) => void): ReadList<UserPost> {
  return ({ limit = 10, after }) => ({
    async first() {
      const variables = { id: String(userId), limit: limit + 1, after: after === undefined ? null : String(after) }
      const { user } = await api.graphql.query<{ user: Written | null }>(written, variables)
      if (user !== null) onJoined(user.createdAt)
      const posts = (user?.posts ?? []).map(post => ({ ...post, id: Number(post.id) }))
      return { items: posts.slice(0, limit), more: posts.length > limit }
    },
  })
}
