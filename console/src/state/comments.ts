import { api } from '../client.ts'
import { type CommentData, documents, type NewComment, type PostData } from './documents.ts'
import { commentEdit } from './drafts.ts'
import { readFigures } from './figures.ts'
import { follow, type Reader, reader, type Source } from './follow.ts'
import { type Comment, withComments } from './lists.ts'
import {
  changePost,
  dropComment,
  dropPost,
  feedIsOpen,
  forgetPost,
  isComment,
  isOpen,
  latestEvent,
  missing,
  opened,
  page,
  posts,
  takeChangedComment,
  takeNewComment,
  takePost,
  takeUpdate,
} from './posts.ts'
import { withSession } from './session.ts'

/** The number of comments per request. */
const pageSize = 50

/** The number of posts with open comments in the feed. Each has three subscriptions, which count for the rate limit. */
const mostOpened = 8

/** The functions that end the subscriptions of the open posts. */
const followed = new Map<string, () => void>()

const readers = new Map<string, Reader>()

/** The read of an open post and its comments. */
export function readerOf(id: string): Reader {
  const known = readers.get(id) ?? reader(() => withSession(() => readPost(id), { byAnyone: true }))
  readers.set(id, known)
  return known
}

/** Opens the comments of a post in the feed. The post that was opened first may close for that. */
export function openComments(id: string): void {
  const before = opened.peek()
  opened.value = [...before, id]
  followPost(id)
  const [first] = before
  if (before.length === mostOpened && first !== undefined) closeComments(first)
}

export function closeComments(id: string): void {
  opened.value = opened.peek().filter(each => each !== id)
  leave(id)
}

/** Shows the page of a post. Returns a function that leaves it. */
export function openPage(id: string): () => void {
  page.value = id
  missing.value = undefined
  // An open feed hears of all posts.
  if (isId(id)) followPost(id, feedIsOpen.peek() ? [] : [{ document: documents.postUpdated, onData: takeUpdate }])
  else forgetPost(id)
  return () => {
    page.value = undefined
    leave(id)
  }
}

function isId(text: string): boolean {
  return /^[1-9]\d{0,15}$/.test(text)
}

/** Reads the open posts again whose latest read failed. */
export function retryOpenPosts(): void {
  for (const id of followed.keys()) if (readerOf(id).problem.peek() !== undefined) readerOf(id).run()
}

/** The comment is deleted, here or elsewhere. */
export function takeDeletedComment(postId: string, id: string): void {
  dropComment(postId, id)
  if (posts.peek().get(postId)?.moreComments) readFigures.run() // nobody told the number of those that are left
}

function followPost(postId: string, more: readonly Source[] = []): void {
  if (followed.has(postId)) return
  // The comments may be on their way, without what has just happened.
  const readIfReading = () => {
    if (posts.peek().get(postId)?.comments === undefined) readerOf(postId).run()
  }
  const onEnd = () => dropPost(postId) // the subscriptions to the comments of a post end when the post is deleted
  const sources = [
    {
      document: documents.commentAdded,
      onData: ({ commentAdded }: { commentAdded: NewComment }) => {
        takeNewComment(postId, commentAdded)
        readIfReading()
      },
    },
    {
      document: documents.commentUpdated,
      onData: ({ commentUpdated }: { commentUpdated: CommentData }) => {
        takeChangedComment(postId, commentUpdated)
        readIfReading()
      },
    },
    {
      document: documents.commentDeleted,
      onData: ({ commentDeleted }: { commentDeleted: string }) => takeDeletedComment(postId, commentDeleted),
    },
  ].map(source => ({ ...source, variables: { postId }, onEnd }))
  followed.set(postId, follow(api.live, [...sources, ...more], readerOf(postId).run))
}

function leave(id: string): void {
  if (isOpen(id)) return
  followed.get(id)?.()
  followed.delete(id)
  readers.delete(id)
  changePost(id, post => ({ ...post, comments: undefined }))
}

type Answer = { readonly post: (PostData & { readonly comments: readonly CommentData[] }) | null }

/** Reads a post and as many of its comments as are shown. */
export async function readPost(id: string): Promise<void> {
  const asked = latestEvent()
  const shown = posts.peek().get(id)?.comments ?? []
  const wanted = shown.filter(({ arrived }) => !arrived).length
  const read: Comment[] = []
  let more = true
  while (more && (read.length === 0 || read.length < wanted)) {
    const comments = await readPage(id, read.at(-1)?.id, asked)
    if (comments === undefined) return
    read.push(...comments)
    more = comments.length === pageSize
  }
  if (!isOpen(id)) return
  const end = more ? Number(read.at(-1)?.id) : Number.POSITIVE_INFINITY // what comes after it may exist
  changePost(id, post => {
    const known = post.comments ?? []
    const arrived = known.filter(({ seen }) => seen > asked)
    const edited = known.filter(comment => commentEdit(comment.id).peek() !== undefined)
    const isGone = ({ id: one, gone }: Comment) => gone || Number(one) <= end
    const kept = [...arrived, ...edited.map(comment => ({ ...comment, gone: isGone(comment) }))]
    return withComments(post, read.filter(isComment), kept, more)
  })
}

/** Reads the comments that follow those that were read so far. Comments that arrived as events may come after them. */
export async function readMoreComments(id: string): Promise<void> {
  const after = posts
    .peek()
    .get(id)
    ?.comments?.findLast(({ arrived }) => !arrived)?.id
  const read = await readPage(id, after, latestEvent())
  if (read === undefined || !isOpen(id)) return
  const more = read.length === pageSize
  changePost(id, post => withComments(post, read.filter(isComment), post.comments ?? [], more))
}

/** One page of comments, or `undefined` if the post is gone. */
async function readPage(id: string, after: string | undefined, asked: number): Promise<Comment[] | undefined> {
  const { post } = await api.graphql.query<Answer>(documents.post, { id, limit: pageSize, after })
  if (post === null) {
    dropPost(id)
    return undefined
  }
  const { comments, ...data } = post
  if (!takePost(data, asked)) return undefined
  return comments.map(comment => ({ ...comment, arrived: false, seen: asked }))
}
