import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Live } from '../../client/src/index.ts'
import type { CommentData, PostData } from '../../console/src/state/documents.ts'
import type { Reader } from '../../console/src/state/follow.ts'
import type { Post } from '../../console/src/state/lists.ts'
import { waitUntil } from '../support/wait.ts'
import { type FakeSocket, StatePage, settled } from './state-page.ts'

const author = { id: '2', name: 'Grace' }
const at = (second: number) => `2026-01-01T00:00:${String(second).padStart(2, '0')}.000Z`

function post(id: number, changes: Partial<PostData> = {}): PostData {
  const numbers = { likes: 0, commentCount: 0 }
  return {
    id: String(id),
    title: `Post ${id}`,
    content: 'Text',
    ...numbers,
    author,
    publishedAt: at(0),
    updatedAt: at(0),
    ...changes,
  }
}

function comment(id: number, changes: Partial<CommentData> = {}): CommentData {
  return { id: String(id), text: `Comment ${id}`, author, createdAt: at(0), updatedAt: at(0), ...changes }
}

interface Draft {
  value: unknown
}

/** What the modules of the state export, as far as it is used here. Their own types need those of a browser. */
interface State {
  readonly posts: { readonly value: ReadonlyMap<string, Post> }
  readonly feed: { readonly value: readonly Post[] | undefined }
  readonly opened: { readonly value: readonly string[] }
  readonly who: Draft
  readonly away: Draft
  readonly api: { readonly live: Live }
  readonly readFeed: Reader
  readerOf(id: string): Reader
  watchFeed(): void
  openFeed(): void
  openComments(id: string): void
  closeComments(id: string): void
  readMoreComments(id: string): Promise<void>
  forgetPost(id: string): void
  likePost(id: string): Promise<void>
  updatePost(id: string, edit: object): Promise<void>
  deletePost(id: string): Promise<void>
  addComment(postId: string, text: string): Promise<void>
  deleteComment(postId: string, id: string): Promise<void>
  newComment(postId: string): Draft
  postEdit(id: string): Draft
  commentEdit(id: string): Draft
}

let page: StatePage
let state: State
let readsAtStart = 0

describe('the state of posts in the console', () => {
  before(async () => {
    page = new StatePage({ hash: '#/feed' })
    page.document.hidden = true
    const late = Promise.withResolvers<unknown>()
    page.answers.Posts = () => late.promise
    state = await page.load('feed', 'posts', 'comments', 'writing', 'drafts', 'session', 'connection')
    state.who.value = { id: 1, name: 'Ada', email: 'ada@example.com', role: 'admin' }
    state.watchFeed()
    state.openFeed()
    await settled()
    event('postAdded', post(4)) // after the answer was made, and before it arrives
    event('postUpdated', post(2, { title: 'Changed', updatedAt: at(1) }))
    late.resolve({ posts: [post(3), post(2), post(1)] })
    await settled()
    readsAtStart = page.asked.length
  })

  after(() => page[Symbol.dispose]())

  const event = (...args: Parameters<FakeSocket['event']>) => page.sockets.at(-1)?.event(...args)

  /** Adds a post that others have written, and opens it. */
  async function opened(id: number, comments: readonly CommentData[] = []): Promise<void> {
    page.answers.Post = () => ({ post: { ...post(id, { commentCount: comments.length }), comments } })
    event('postAdded', post(id))
    state.openComments(String(id))
    await settled()
  }

  const known = (id: number) => state.posts.value.get(String(id))
  const shown = () => state.feed.value?.map(({ id }) => Number(id)) ?? []
  const textsOf = (id: number) => known(id)?.comments?.map(({ text }) => text)

  it('the feed is read once, after it has subscribed, and lists each post once, newest first', async () => {
    assert.equal(readsAtStart, 1)
    assert.equal(known(2)?.title, 'Changed') // while the answer was under way
    for (const id of [13, 11, 13, 12]) event('postAdded', post(id))
    assert.deepEqual(
      shown().filter(id => id <= 13),
      [13, 12, 11, 4, 3, 2, 1],
    )
  })

  it('who comes back to the feed sees the present numbers of likes', async () => {
    page.answers.Figures = () => ({ posts: [{ id: '3', likes: 1234, commentCount: 0 }] })
    state.openFeed()
    await waitUntil(() => known(3)?.likes === 1234)
  })

  it('a text that was changed elsewhere is shown, and an older one does not come back', () => {
    event('postAdded', post(21))
    event('postUpdated', post(21, { title: 'Newest', updatedAt: at(2) }))
    event('postUpdated', post(21, { title: 'Older', updatedAt: at(1), likes: 4 }))
    assert.deepEqual([known(21)?.title, known(21)?.likes], ['Newest', 4])
    event('postUpdated', post(22))
    assert.equal(known(22), undefined, 'a post that is not shown stays so')
  })

  it('a deleted post leaves, and no late answer or event brings it back', async () => {
    event('postAdded', post(31))
    const late = Promise.withResolvers<unknown>()
    page.answers.Like = () => late.promise
    const liking = state.likePost('31')
    event('postDeleted', '31')
    assert.equal(shown().includes(31), false)
    late.resolve({ likePost: post(31, { likes: 1 }) })
    await liking
    event('postAdded', post(31))
    assert.deepEqual([known(31), shown().includes(31)], [undefined, false])
  })

  it('a deleted post keeps its place for who reads it, edits it or comments on it, until they close it', async () => {
    await opened(41)
    for (const id of [42, 43, 44]) event('postAdded', post(id))
    state.newComment('42').value = 'A draft'
    state.postEdit('43').value = { base: post(43), title: 'A draft', content: 'Text' }
    for (const id of ['41', '42', '43', '44']) event('postDeleted', id)
    assert.deepEqual(
      [41, 42, 43, 44].map(id => known(id)?.gone),
      [true, true, true, undefined],
    )
    assert.deepEqual(
      shown().filter(id => id >= 41 && id <= 44),
      [43, 42, 41],
    )
    event('postUpdated', post(41, { title: 'Too late', updatedAt: at(5) }))
    assert.equal(known(41)?.title, 'Post 41')
    state.forgetPost('41')
    assert.equal(shown().includes(41), false)
  })

  it('what the user deletes leaves at once, even if its event comes before the answer', async () => {
    await opened(51, [comment(510)])
    const late = Promise.withResolvers<unknown>()
    page.answers.DeleteComment = () => late.promise
    page.answers.Delete = () => late.promise
    state.commentEdit('510').value = { base: comment(510), text: 'Changed' }
    const deletions = [state.deleteComment('51', '510')]
    event('commentDeleted', '510', '51')
    assert.equal(known(51)?.comments?.[0]?.gone, undefined)
    deletions.push(state.deletePost('51'))
    event('postDeleted', '51')
    assert.equal(known(51)?.gone, undefined)
    late.resolve({})
    await Promise.all(deletions)
    assert.equal(known(51), undefined)
  })

  it('comments arrive once, as an event or as an answer, and the number of comments is that of those shown', async () => {
    await opened(61, [comment(601)])
    const own = { ...comment(603), post: { commentCount: 3 } }
    page.answers.Comment = () => ({ addComment: own })
    event('commentAdded', { ...comment(602), post: { commentCount: 2 } }, '61')
    event('commentAdded', own, '61')
    await state.addComment('61', 'Comment 603')
    assert.deepEqual([textsOf(61), known(61)?.commentCount], [['Comment 601', 'Comment 602', 'Comment 603'], 3])
    event('commentUpdated', comment(602, { text: 'Changed', updatedAt: at(1) }), '61')
    event('commentDeleted', '601', '61')
    assert.deepEqual([textsOf(61), known(61)?.commentCount], [['Changed', 'Comment 603'], 2])
    event('commentAdded', { ...comment(601), post: { commentCount: 3 } }, '61')
    assert.equal(known(61)?.commentCount, 2, 'what is deleted does not come back')
    const subscribed = [...(page.sockets.at(-1)?.subscriptions.values() ?? [])]
    assert.equal(subscribed.filter(({ variables }) => variables?.postId === '61').length, 3)
    state.closeComments('61')
    assert.deepEqual([known(61)?.comments, known(61)?.commentCount], [undefined, 2])
    const left = [...(page.sockets.at(-1)?.subscriptions.values() ?? [])]
    assert.equal(left.length, subscribed.length - 3)
  })

  it('a deleted comment keeps its place for who is editing it, and does not count', async () => {
    await opened(71, [comment(701), comment(702)])
    state.commentEdit('701').value = { base: comment(701), text: 'Changed' }
    for (const id of ['701', '702']) event('commentDeleted', id, '71')
    assert.deepEqual(
      [known(71)?.comments?.map(({ id, gone }) => [id, gone]), known(71)?.commentCount],
      [[['701', true]], 0],
    )
  })

  it('comments that arrive while the others are read are kept, and the deleted ones are not shown', async () => {
    const late = Promise.withResolvers<unknown>()
    event('postAdded', post(81))
    page.answers.Post = () => late.promise
    state.openComments('81')
    await settled()
    event('commentDeleted', '801', '81')
    event('postUpdated', post(81, { title: 'Newer', updatedAt: at(3) }))
    event('commentAdded', { ...comment(803), post: { commentCount: 2 } }, '81')
    const comments = [comment(802), comment(803)]
    page.answers.Post = () => ({ post: { ...post(81), comments } })
    late.resolve({ post: { ...post(81), comments: [comment(801), comment(802)] } })
    await settled()
    assert.deepEqual(
      [textsOf(81), known(81)?.title, known(81)?.commentCount],
      [['Comment 802', 'Comment 803'], 'Newer', 2],
    )

    const later = Promise.withResolvers<unknown>()
    page.answers.Post = () => later.promise
    state.readerOf('81').run()
    await settled()
    event('commentAdded', { ...comment(804), post: { commentCount: 3 } }, '81')
    event('commentUpdated', comment(802, { text: 'Changed', updatedAt: at(1) }), '81')
    event('commentDeleted', '803', '81')
    later.resolve({ post: { ...post(81), comments } })
    await settled()
    assert.deepEqual(textsOf(81), ['Changed', 'Comment 804'])
  })

  it('a comment or post that is left before its answer comes stays closed', async () => {
    const late = Promise.withResolvers<unknown>()
    event('postAdded', post(91))
    page.answers.Post = () => late.promise
    state.openComments('91')
    await settled()
    state.closeComments('91')
    late.resolve({ post: { ...post(91), comments: [comment(901)] } })
    await settled()
    assert.equal(known(91)?.comments, undefined)
  })

  it('all comments that are shown are read anew, also those of later pages', async () => {
    const all = Array.from({ length: 60 }, (_, index) => comment(9201 + index))
    page.answers.Post = ({ limit, after = '0' }: { limit: number; after?: string }) => {
      const comments = all.filter(({ id }) => Number(id) > Number(after)).slice(0, limit)
      return { post: { ...post(92, { commentCount: 60 }), comments } }
    }
    event('postAdded', post(92))
    state.openComments('92')
    await settled()
    assert.equal(known(92)?.comments?.length, 50)
    await state.readMoreComments('92')
    all[55] = comment(9256, { text: 'Changed', updatedAt: at(1) })
    state.readerOf('92').run()
    await settled()
    assert.deepEqual(
      textsOf(92),
      all.map(({ text }) => text),
    )
  })

  it('an open post whose reading failed is read again as soon as events arrive again', async () => {
    const reconnected = async () => {
      page.sockets.at(-1)?.onclose?.({ code: 1006 })
      state.api.live.retryNow()
      await settled()
    }
    await opened(95)
    page.answers.Post = () => assert.fail('no answer')
    await reconnected() // from now on the subscriptions know their position, so that they miss nothing
    assert.equal(state.readerOf('95').problem.value?.kind, 'offline')
    page.answers.Post = () => ({ post: { ...post(95), comments: [comment(951)] } })
    await reconnected()
    assert.deepEqual(textsOf(95), ['Comment 951'])
    state.closeComments('95')
  })

  it('only what was changed is written, on the condition that nobody else has changed it', async () => {
    const written: object[] = []
    page.answers.Update = variables => {
      written.push(variables)
      return { updatePost: post(95, { title: 'New', updatedAt: at(1) }) }
    }
    const base = { title: 'Old', content: 'Text', updatedAt: at(0) }
    await state.updatePost('95', { base, title: 'New', content: 'Text' })
    await state.updatePost('95', { base, title: 'Old', content: 'Text' })
    assert.deepEqual(written, [{ id: '95', title: 'New', ifUpdatedAt: at(0) }])
  })

  it('at most eight posts are open: a ninth closes the first', async () => {
    const before = state.opened.value.length
    for (let id = 101; id <= 109; id++) await opened(id)
    assert.equal(before + 9 > 8, true)
    assert.deepEqual(state.opened.value, ['102', '103', '104', '105', '106', '107', '108', '109'])
    assert.equal(known(101)?.comments, undefined)
  })

  it('what is read anew takes away what is gone, and keeps what arrived meanwhile', async () => {
    for (const id of [201, 202, 203]) event('postAdded', post(id))
    const late = Promise.withResolvers<unknown>()
    page.answers.Posts = () => late.promise
    state.readFeed.run()
    await settled()
    event('postAdded', post(204))
    const all = shown().filter(id => id !== 202 && id !== 204)
    late.resolve({ posts: all.map(id => post(id, { likes: 7 })) })
    await settled()
    assert.deepEqual(shown(), [204, ...all])
    assert.equal(known(203)?.likes, 7)
    page.answers.Posts = () => ({ posts: [post(3), post(2), post(1)] })
  })

  it('the service is away if it does not answer after events have stopped, and no longer when they go on', async () => {
    for (const id of state.opened.value) state.closeComments(id) // an answer would end it, too
    page.sockets.at(-1)?.onclose?.({ code: 1006 })
    await settled()
    const before = page.asked.length
    assert.equal(state.away.value, true)
    state.api.live.retryNow()
    await settled()
    assert.deepEqual([state.api.live.state, page.asked.length, state.away.value], [{ state: 'live' }, before, false])
  })

  it('keeps the drafts of each user apart, also after the comments are closed and after a reload', async () => {
    const ada = state.who.value
    await opened(1)
    state.newComment('1').value = 'A secret of Ada'
    state.closeComments('1')
    state.who.value = { id: 2, name: 'Grace', email: 'grace@example.com', role: 'member' }
    assert.equal(state.newComment('1').value, undefined)
    state.who.value = ada
    assert.equal(state.newComment('1').value, 'A secret of Ada')
    assert.equal(page.session.getItem('duet-draft-1-comment-on-1'), '"A secret of Ada"')
    state.newComment('1').value = undefined
    assert.equal(page.session.getItem('duet-draft-1-comment-on-1'), null)
  })
})
