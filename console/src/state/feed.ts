import { computed, effect, signal } from '@preact/signals'
import { api } from '../client.ts'
import { retryOpenPosts } from './comments.ts'
import { documents, type PostData } from './documents.ts'
import { readFigures } from './figures.ts'
import { follow, reader } from './follow.ts'
import { mostPosts, newestFirst, withNewest } from './lists.ts'
import {
  dropPost,
  feedIsOpen,
  ids,
  latestEvent,
  posts,
  releasePost,
  takeNewPost,
  takePost,
  takeUpdate,
} from './posts.ts'
import { route } from './route.ts'
import { withSession } from './session.ts'

/** The least and the largest number of posts per request. */
const pageSizes = { first: 10, most: 50 }

/** The time between reads of the numbers of likes and comments, while the feed or a post is on the screen. */
const figuresMs = 30_000

export const morePosts = signal(false)

/** Newest first. Absent if not read yet. */
export const feed = computed(() => ids.value?.flatMap(id => posts.value.get(id) ?? []))

/** Reads what the feed shows. */
export const readFeed = reader(() => withSession(readShown, { byAnyone: true }))

let isWatched = false

/** Starts to receive new posts, also while another page is shown. The page of a post alone does not need them. */
export function watchFeed(): void {
  effect(() => {
    if (isWatched || route.value.name === 'posts') return
    isWatched = true
    const onData = ({ postAdded }: { postAdded: PostData }) => addPost(postAdded)
    follow(api.live, [{ document: documents.postAdded, onData }], readIfOpen)
  })
  // Likes send no events, and comments only to those who have them open.
  addEventListener('focus', readFigures.run)
  setInterval(() => {
    if (!document.hidden) readFigures.run()
  }, figuresMs)
  const retry = () => {
    if (readFeed.problem.peek() !== undefined) readFeed.run()
    retryOpenPosts()
  }
  api.live.onState(({ state }) => {
    if (state === 'live') retry()
  })
  addEventListener('online', retry) // the socket may have stayed open
}

/** Shows the feed. It is read once, and kept up to date by events. */
export function openFeed(): void {
  if (feedIsOpen.peek()) {
    readFigures.run()
    return
  }
  feedIsOpen.value = true
  const sources = [
    { document: documents.postUpdated, onData: takeUpdate },
    { document: documents.postDeleted, onData: ({ postDeleted }: { postDeleted: string }) => dropPost(postDeleted) },
  ]
  follow(api.live, sources, readIfOpen)
}

function readIfOpen(): void {
  if (feedIsOpen.peek()) readFeed.run()
}

export async function readOlderPosts(): Promise<void> {
  const asked = latestEvent()
  const read = await postsAfter(ids.peek()?.at(-1), pageSizes.first)
  show(read, asked)
  morePosts.value = read.length === pageSizes.first
}

/** Adds a post that was just written. */
export function addPost(post: PostData): void {
  if (!feedIsOpen.peek() || !takeNewPost(post)) return
  const shown = ids.peek()
  if (shown === undefined) return
  ids.value = withNewest(shown, post.id)
  const oldest = shown.at(-1)
  if (oldest === undefined || ids.value.includes(oldest)) return
  morePosts.value = true
  releasePost(oldest)
}

/** Reads the newest posts, down to the oldest one that is shown. */
async function readShown(): Promise<void> {
  const asked = latestEvent()
  const shown = ids.peek() ?? []
  const oldest = Number(shown.at(-1) ?? Number.POSITIVE_INFINITY)
  const limit = Math.min(Math.max(shown.length, pageSizes.first), pageSizes.most)
  const read: PostData[] = []
  let more = true
  const isEnough = () => read.length > 0 && (Number(read.at(-1)?.id) <= oldest || read.length >= mostPosts)
  while (more && !isEnough()) {
    const answer = await postsAfter(read.at(-1)?.id, limit)
    read.push(...answer)
    more = answer.length === limit
  }
  const found = new Set(read.map(({ id }) => id))
  const end = more ? Number(read.at(-1)?.id) : 0
  for (const { id, seen } of feed.peek() ?? []) {
    if (!found.has(id) && Number(id) >= end && seen <= asked) dropPost(id)
  }
  const arrived = [...posts.peek().values()].filter(post => post.arrived && post.seen > asked).map(({ id }) => id)
  ids.value = [...arrived, ...(ids.peek() ?? []).filter(id => Number(id) >= end)]
  show(read, asked)
  morePosts.value = more
}

function show(read: readonly PostData[], asked: number): void {
  const exist = read.filter(post => takePost(post, asked)).map(({ id }) => id)
  ids.value = newestFirst([...exist, ...(ids.peek() ?? [])])
}

async function postsAfter(after: string | undefined, limit: number): Promise<readonly PostData[]> {
  return (await api.graphql.query<{ posts: readonly PostData[] }>(documents.posts, { limit, after })).posts
}
