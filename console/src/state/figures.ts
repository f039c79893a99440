import { api } from '../client.ts'
import { documents, type Figures } from './documents.ts'
import { reader } from './follow.ts'
import { withFigures } from './lists.ts'
import { changePost, ids, latestEvent, page } from './posts.ts'
import { route } from './route.ts'

/**
 * Reads the numbers of likes and comments of what is shown, in one request. Somebody who changes between windows all
 * the time does not ask all the time.
 */
export const readFigures = reader(async () => {
  await readShown()
  await new Promise(resolve => setTimeout(resolve, leastPauseMs))
})

const leastPauseMs = 2000
const mostPosts = 300

async function readShown(): Promise<void> {
  const asked = latestEvent()
  for (const figures of await figuresShown()) changePost(figures.id, post => withFigures(post, figures, asked))
}

async function figuresShown(): Promise<readonly Figures[]> {
  const id = page.peek()
  if (id !== undefined) {
    const { post } = await api.graphql.query<{ post: Figures | null }>(documents.figuresOfOne, { id })
    return post === null ? [] : [post]
  }
  const limit = Math.min(ids.peek()?.length ?? 0, mostPosts)
  if (route.peek().name !== 'feed' || limit === 0) return []
  return (await api.graphql.query<{ posts: readonly Figures[] }>(documents.figures, { limit })).posts
}
