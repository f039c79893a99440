import assert from 'node:assert/strict'
import { after, before, describe, it, mock } from 'node:test'
import type { CommentData, PostData } from '../../console/src/state/documents.ts'
import type { Reader } from '../../console/src/state/follow.ts'
import type { Post } from '../../console/src/state/lists.ts'
import { waitUntil } from '../support/wait.ts'
import { StatePage, settled, stopTime } from './state-page.ts'

const author = { id: '2', name: 'Grace' }
const at = (second: number) => `2026-01-01T00:00:${String(second).padStart(2, '0')}.000Z`

function post(id: number, changes: Partial<PostData> = {}): PostData {
  const numbers = { likes: 0, commentCount: 0 }
  const times = { publishedAt: at(0), updatedAt: at(0) }
  return { id: String(id), title: `Post ${id}`, content: 'Text', ...numbers, ...times, author, ...changes }
}

function comment(id: number, changes: Partial<CommentData> = {}): CommentData {
  return { id: String(id), text: `Comment ${id}`, author, createdAt: at(0), updatedAt: at(0), ...changes }
}

const modules = ['feed', 'posts', 'comments', 'writing', 'drafts', 'session', 'messages', 'route']

/** The connection breaks, and comes back. */
async function reconnect(page: StatePage, state: Awaited<ReturnType<StatePage['load']>>): Promise<void> {
  page.sockets.at(-1)?.onclose?.({ code: 1006 })
  state.api.live.retryNow()
  await settled()
}

function readAnew({ run }: Reader): Promise<void> {
  run()
  return settled()
}

let page: StatePage
let state: Awaited<ReturnType<StatePage['load']>>
let readsAtStart = 0

describe('the state of posts in the console', () => {
  before(async () => {
    page = new StatePage({ hash: '#/feed' })
    page.document.hidden = true
    const answer = page.hold('Posts')
    state = await page.load(...modules)
    state.who.value = { id: 1, name: 'Ada', email: 'ada@example.com', role: 'admin' }
    state.watchFeed()
    state.openFeed()
    await settled()
    event('postAdded', post(4, { author: { id: '1', name: 'Ada' } })) // after the answer was made, and before it arrives
    for (let id = 901; id <= 920; id++) event('postUpdated', post(id))
    for (const second of [1, 2]) event('postUpdated', post(2, { title: `Changed ${second}`, updatedAt: at(second) }))
    await answer({ posts: [post(3), post(2), post(1)] })
    readsAtStart = page.asked.length
  })

  after(() => page[Symbol.dispose]())

  const event: StatePage['event'] = (...args) => page.event(...args)

  /** Adds a post that others have written, and opens it. */
  async function opened(id: number, comments: readonly CommentData[] = []): Promise<void> {
    page.answers.Post = () => ({ post: { ...post(id, { commentCount: comments.length }), comments } })
    event('postAdded', post(id))
    state.openComments(String(id))
    await settled()
  }

  const known = (id: number): Post | undefined => state.posts.value.get(String(id))
  const shown = (): number[] => state.feed.value?.map(({ id }: Post) => Number(id)) ?? []
  const textsOf = (id: number) => known(id)?.comments?.map(({ text }) => text)

  it('the feed is read once, after it has subscribed, and lists each post once, newest first', async () => {
    assert.equal(readsAtStart, 1)
    assert.equal(known(2)?.title, 'Changed 2') // while the answer was under way
    for (const id of [13, 11, 13, 12]) event('postAdded', post(id))
    const first = shown().filter(id => id <= 13)
    assert.deepEqual(first, [13, 12, 11, 4, 3, 2, 1])
  })

  it('who comes back to the feed sees the present numbers of likes', async () => {
    page.answers.Figures = () => ({ posts: [{ id: '3', likes: 1234, commentCount: 0 }] })
    state.openFeed()
    await waitUntil(() => known(3)?.likes === 1234)
  })

  it('a text that was changed elsewhere is shown, and an older one does not come back', async () => {
    event('postAdded', post(21))
    event('postUpdated', post(21, { title: 'Newest', updatedAt: at(2) }))
    event('postUpdated', post(21, { title: 'Older', updatedAt: at(1), likes: 4 }))
    const renamed = { author: { ...author, name: 'G.' }, updatedAt: at(2) } // a new name is no change of the post
    event('postUpdated', post(21, { ...renamed, title: 'Newest', likes: 3 }))
    assert.deepEqual([known(21)?.title, known(21)?.likes, known(21)?.author.name], ['Newest', 4, 'G.'])
    const send = page.hold('Like', 'Update')
    const edit = { base: post(21), title: 'Newest', content: 'Text' }
    const writing = [state.likePost('21'), state.updatePost('21', edit)]
    event('postUpdated', post(21, { title: 'Newest', updatedAt: at(2), commentCount: 5 }))
    const answer = post(21, { likes: 6, commentCount: 4 })
    await send({ likePost: answer, updatePost: answer })
    await Promise.all(writing)
    assert.deepEqual([known(21)?.likes, known(21)?.commentCount], [6, 5])
    event('postUpdated', post(22))
    assert.equal(known(22), undefined, 'a post that is not shown stays so')
  })

  it('a deleted post leaves, and no late answer or event brings it back', async () => {
    event('postAdded', post(31))
    const send = page.hold('Like')
    const liking = state.likePost('31')
    event('postDeleted', '31')
    assert.equal(shown().includes(31), false)
    await send({ likePost: post(31, { likes: 1 }) })
    await liking
    event('postAdded', post(31))
    assert.deepEqual([known(31), shown().includes(31), state.missing.value], [undefined, false, undefined])
  })

  it('a deleted post keeps its place for who reads it, edits it or comments on it, until they close it', async () => {
    await opened(41)
    for (const id of [42, 43, 44]) event('postAdded', post(id))
    state.newComment('42').value = 'A draft'
    state.postEdit('43').value = { base: post(43), title: 'A draft', content: 'Text' }
    for (const id of ['41', '42', '43', '44']) event('postDeleted', id)
    const gone = [41, 42, 43, 44].map(id => known(id)?.gone)
    const left = shown().filter(id => id >= 41 && id <= 44)
    assert.deepEqual(gone, [true, true, true, undefined])
    assert.deepEqual(left, [43, 42, 41])
    event('postUpdated', post(41, { title: 'Too late', updatedAt: at(5) }))
    assert.deepEqual([known(41)?.title, known(41)?.comments], ['Post 41', undefined])
    state.forgetPost('41')
    assert.equal(shown().includes(41), false)
  })

  it('what the user deletes leaves at once, even if its event comes before the answer', async () => {
    await opened(51, [comment(510)])
    const send = page.hold('DeleteComment', 'Delete')
    state.commentEdit('510').value = { base: comment(510), text: 'Changed' }
    const deletions = [state.deleteComment('51', '510')]
    event('commentDeleted', '510', '51')
    assert.equal(known(51)?.comments?.[0]?.gone, undefined)
    deletions.push(state.deletePost('51'))
    event('postDeleted', '51')
    assert.equal(known(51)?.gone, undefined)
    await send({})
    await Promise.all(deletions)
    assert.equal(known(51), undefined)
  })

  it('what the user could not delete leaves when somebody else deletes it', async () => {
    await opened(52, [comment(520)])
    page.answers.DeleteComment = page.answers.Delete = () => new Response(null, { status: 503 })
    const edit = state.commentEdit('520')
    edit.value = { base: comment(520), text: 'Changed' }
    for (const work of [state.deleteComment('52', '520'), state.deletePost('52')]) await assert.rejects(work)
    assert.equal(edit.value?.text, 'Changed')
    edit.value = undefined
    event('postAdded', post(52)) // once more
    assert.equal(textsOf(52)?.length, 1)
    event('commentDeleted', '520', '52')
    assert.deepEqual(textsOf(52), [])
    state.closeComments('52')
    event('postDeleted', '52')
    assert.equal(known(52), undefined)
  })

  it('screen readers hear once of what others write and delete', async () => {
    await opened(54)
    const said: string[] = []
    const stop = state.announcement.subscribe((text: string) => said.push(text))
    said.length = 0
    const own = { author: { id: '1', name: 'Ada' } }
    for (const each of [post(55), post(56), post(55), post(57, own)]) event('postAdded', each)
    for (const each of [comment(540), comment(541), comment(540), comment(542, own)]) {
      event('commentAdded', { ...each, post: { commentCount: 1 } }, '54')
    }
    event('postDeleted', '54')
    event('postAdded', post(58))
    event('postDeleted', '54')
    stop()
    assert.deepEqual(said, [
      ...['New post by Grace: Post 55', 'New post by Grace: Post 56'],
      ...['New comment by Grace: Comment 540', 'New comment by Grace: Comment 541'],
      ...['The post “Post 54” is deleted', 'New post by Grace: Post 58'],
    ])
  })

  it('comments arrive once, as an event or as an answer, and the number of comments is that of those shown', async () => {
    await opened(61, [comment(601)])
    const own = { ...comment(603), post: { commentCount: 3 } }
    page.answers.Comment = () => ({ addComment: own })
    event('commentAdded', own, '61')
    for (const id of [602, 601]) event('commentAdded', { ...comment(id), post: { commentCount: 2 } }, '61')
    const arrived = known(61)?.comments?.map(comment => comment.arrived)
    assert.deepEqual(arrived, [false, true, true])
    await state.addComment('61', 'Comment 603')
    assert.deepEqual([textsOf(61), known(61)?.commentCount], [['Comment 601', 'Comment 602', 'Comment 603'], 3])
    event('commentUpdated', comment(602, { text: 'Changed', updatedAt: at(1) }), '61')
    event('commentUpdated', comment(602, { text: 'Older' }), '61')
    event('commentDeleted', '601', '61')
    assert.deepEqual([textsOf(61), known(61)?.commentCount], [['Changed', 'Comment 603'], 2])
    event('commentAdded', { ...comment(601), post: { commentCount: 3 } }, '61')
    assert.equal(known(61)?.commentCount, 2, 'what is deleted does not come back')
    state.closeComments('61')
    assert.deepEqual([known(61)?.comments, known(61)?.commentCount], [undefined, 2])
  })

  it('a deleted comment keeps its place for who is editing it, and does not count', async () => {
    await opened(71, [comment(701), comment(702)])
    state.commentEdit('701').value = { base: comment(701), text: 'Changed' }
    for (const id of ['701', '702']) event('commentDeleted', id, '71')
    const left = known(71)?.comments?.map(({ id, gone }) => [id, gone])
    assert.deepEqual([left, known(71)?.commentCount], [[['701', true]], 0])
  })

  it('what was deleted unseen leaves with the next read, but not what the user is reading or editing', async () => {
    await opened(75, [comment(751), comment(752), comment(753), comment(754)])
    for (const id of [751, 753, 754]) state.commentEdit(String(id)).value = { base: comment(id), text: 'Changed' }
    event('commentDeleted', '754', '75')
    const comments = () => known(75)?.comments ?? []
    const gone = () => comments().flatMap(each => (each.gone ? [each.id] : []))
    const firstPage = Array.from({ length: 50 }, (_, index) => comment(401 + index))
    page.answers.Post = () => ({ post: { ...post(75), comments: firstPage } })
    await readAnew(state.readerOf('75'))
    assert.deepEqual([gone(), comments().length], [['754'], 53], 'the others may be on the next page')
    page.answers.Post = () => ({ post: { ...post(75), comments: [comment(753)] } })
    await readAnew(state.readerOf('75'))
    assert.deepEqual([gone(), comments().length, known(75)?.commentCount], [['751', '754'], 3, 1])
    page.answers.Post = () => ({ post: null })
    await readAnew(state.readerOf('75'))
    assert.equal(known(75)?.gone, true)
  })

  it('a post that is open in the feed and on its page stays open until both are left, and is followed once', async () => {
    await opened(76, [comment(761)])
    const followed = () => page.sockets.at(-1)?.subscriptions.size
    const before = followed()
    state.openPage('76')()
    assert.deepEqual([textsOf(76)?.length, followed()], [1, before])
    const leave = state.openPage('76')
    state.closeComments('76')
    assert.deepEqual([textsOf(76)?.length, followed()], [1, before])
    leave()
    assert.deepEqual([textsOf(76), followed()], [undefined, Number(before) - 3])
  })

  it('comments that arrive while the others are read are kept, deleted ones are not shown, and none where nobody reads them any more', async () => {
    const openHeld = async (id: number) => {
      const send = page.hold('Post')
      event('postAdded', post(id))
      state.openComments(String(id))
      await settled()
      return send
    }
    let send = await openHeld(81)
    event('commentDeleted', '801', '81')
    event('postUpdated', post(81, { title: 'Newer', updatedAt: at(3) }))
    event('commentAdded', { ...comment(803), post: { commentCount: 2 } }, '81')
    const comments = [comment(802), comment(803)]
    page.answers.Post = () => ({ post: { ...post(81), comments } })
    await send({ post: { ...post(81), comments: [comment(801), comment(802)] } })
    const { title, commentCount } = known(81) ?? {}
    assert.deepEqual([textsOf(81), title, commentCount], [['Comment 802', 'Comment 803'], 'Newer', 2])

    send = page.hold('Post')
    await readAnew(state.readerOf('81'))
    event('commentAdded', { ...comment(805), post: { commentCount: 4 } }, '81')
    event('commentUpdated', comment(802, { text: 'Changed', updatedAt: at(1) }), '81')
    event('commentDeleted', '803', '81')
    await send({ post: { ...post(81), comments: [...comments, comment(804)] } })
    assert.deepEqual(textsOf(81), ['Changed', 'Comment 804', 'Comment 805'])

    send = await openHeld(82)
    const changed = comment(821, { text: 'Changed', updatedAt: at(1) })
    event('commentUpdated', changed, '82')
    page.answers.Post = () => ({ post: { ...post(82), comments: [changed] } })
    await send({ post: { ...post(82), comments: [comment(821)] } })
    assert.deepEqual(textsOf(82), ['Changed'])

    send = await openHeld(91)
    state.closeComments('91')
    await send({ post: { ...post(91), comments: [comment(901)] } })
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
    event('commentUpdated', comment(9260, { text: 'Not shown yet', updatedAt: at(1) }), '92')
    assert.deepEqual([known(92)?.comments?.length, known(92)?.commentCount], [50, 60])
    for (const id of [9263, 9264, 9263]) {
      event('commentAdded', { ...comment(id), post: { commentCount: id - 9202 } }, '92')
    }
    event('postUpdated', post(92, { commentCount: 60, updatedAt: at(1) }))
    assert.equal(known(92)?.commentCount, 62)
    const reading = state.readMoreComments('92')
    event('commentDeleted', '9259', '92')
    await reading
    all.splice(58, 1)
    all.push(comment(9263), comment(9264))
    assert.deepEqual([textsOf(92)?.length, known(92)?.commentCount], [61, 61])
    all[55] = comment(9256, { text: 'Changed', updatedAt: at(1) })
    await readAnew(state.readerOf('92'))
    const texts = all.map(({ text }) => text)
    assert.deepEqual(textsOf(92), texts)
    const send = page.hold('Post')
    const tooLate = state.readMoreComments('92')
    state.closeComments('92')
    await send({ post: { ...post(92), comments: [comment(9270)] } })
    await tooLate
    assert.equal(textsOf(92), undefined)
  })

  it('an open post whose reading failed is read again as soon as events arrive again', async () => {
    await opened(95)
    delete page.answers.Post
    await reconnect(page, state) // from now on the subscriptions know their position, so that they miss nothing
    assert.equal(state.readerOf('95').problem.value?.kind, 'offline')
    page.answers.Post = () => ({ post: { ...post(95), comments: [comment(951)] } })
    await reconnect(page, state)
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
    const stored = await state.updatePost('95', { base, title: 'New', content: 'Text' })
    assert.deepEqual(stored, { title: 'New', content: 'Text', updatedAt: at(1) })
    await state.updatePost('95', { base, title: 'Old', content: 'Text' })
    await state.updatePost('95', { base, title: 'Old', content: '' })
    assert.deepEqual(written, [
      { id: '95', title: 'New', ifUpdatedAt: at(0) },
      { id: '95', content: '', ifUpdatedAt: at(0) },
    ])
  })

  it('at most eight posts are open: a ninth closes the first', async () => {
    for (let id = 101; id <= 109; id++) await opened(id)
    assert.deepEqual(state.opened.value, ['102', '103', '104', '105', '106', '107', '108', '109'])
    assert.equal(known(101)?.comments, undefined)
  })

  it('what is read anew takes away what is gone, and keeps what arrived meanwhile', async () => {
    for (const id of [201, 202, 203]) event('postAdded', post(id))
    const send = page.hold('Posts')
    await readAnew(state.readFeed)
    event('postAdded', post(204))
    const all = shown().filter(id => id !== 202 && id !== 204)
    await send({ posts: all.map(id => post(id, { likes: 7, commentCount: 3 })) })
    assert.deepEqual([shown(), known(203)?.likes, known(2)?.commentCount], [[204, ...all], 7, 3])
    page.answers.Posts = () => ({ posts: [post(3), post(2), post(1)] })
  })
})

it('the page of a post hears of the post without the feed, counts many comments, and leaves nothing behind', async t => {
  stopTime(t)
  using page = new StatePage({ hash: '#/posts/7' })
  const state = await page.load(...modules)
  const followed = () => page.sockets.at(-1)?.subscriptions.size
  const known = () => state.posts.value.get('7')
  const comments = Array.from({ length: 50 }, (_, index) => comment(index + 1))
  page.answers.Post = () => ({ post: { ...post(7, { commentCount: 60 }), comments } })
  state.watchFeed()
  let leave = state.openPage('7')
  await settled()
  assert.deepEqual([page.asked, followed()], [['Post'], 4])
  page.event('postUpdated', post(7, { title: 'New', updatedAt: at(1) }))
  assert.equal(known().title, 'New')
  page.answers.Figures = ({ id }: { id: string }) => ({ post: { id, likes: 3, commentCount: 59 } })
  page.event('commentDeleted', '50', '7')
  await settled()
  assert.deepEqual([known().likes, known().commentCount, known().comments.length], [3, 59, 49])
  mock.timers.tick(2000)
  await settled()
  const send = page.hold('Figures')
  page.tell('focus')
  await settled()
  page.event('commentAdded', { ...comment(61), post: { commentCount: 60 } }, '7')
  await send({ post: { id: '7', likes: 4, commentCount: 59 } })
  assert.deepEqual([known().likes, known().commentCount], [4, 60])
  leave()
  assert.deepEqual([state.page.value, known().comments, followed()], [undefined, undefined, 0])

  page.asked.length = 0
  leave = state.openPage('7x')
  assert.deepEqual([state.missing.value, page.asked], ['7x', []])
  leave()
  page.answers.Post = () => ({ post: null })
  leave = state.openPage('8')
  assert.equal(state.missing.value, undefined)
  await settled()
  assert.equal(state.missing.value, '8')
  leave()
  delete page.answers.Post
  leave = state.openPage('7')
  await settled()
  assert.deepEqual([state.readerOf('7').problem.value?.kind, followed()], ['offline', 4])
  leave()
  leave = state.openPage('7')
  assert.equal(state.readerOf('7').problem.value, undefined, 'it is a new attempt')
  leave()

  page.answers.Posts = () => ({ posts: [post(20)] })
  page.asked.length = 0
  state.go('users')
  await settled()
  page.event('postAdded', post(9))
  assert.deepEqual([page.asked, state.posts.value.has('9')], [[], false], 'nobody sees the feed')
  for (const view of ['feed', 'users', 'feed']) {
    state.go(view)
    await settled()
    state.openFeed()
  }
  await settled()
  assert.deepEqual([followed(), state.feed.value.map(({ id }: Post) => id)], [3, ['20']])
})

describe('the feed of the console', () => {
  /** The feed of a service with these posts, newest first. */
  async function feedOf(page: StatePage, stored: PostData[]) {
    page.answers.Posts = ({ limit, after = '1000' }: { limit: number; after?: string }) => ({
      posts: stored.filter(({ id }) => Number(id) < Number(after)).slice(0, limit),
    })
    const state = await page.load(...modules)
    state.who.value = { id: 1, name: 'Ada', email: 'ada@example.com', role: 'member' }
    state.watchFeed()
    state.openFeed()
    await settled()
    return { state, shown: (): string[] => state.feed.value?.map(({ id }: Post) => id) }
  }

  const idsOf = (stored: readonly PostData[]) => stored.map(({ id }) => id)
  const posts = (newest: number, count = newest) => Array.from({ length: count }, (_, index) => post(newest - index))

  it('shows the first post of all at once, and at most 500 unless the user loads older ones', async t => {
    stopTime(t)
    using page = new StatePage()
    const { state, shown } = await feedOf(page, [])
    const write = (id: number) => page.event('postAdded', post(id))
    assert.deepEqual(shown(), [])
    page.tell('focus')
    await settled()
    assert.deepEqual(page.asked, ['Posts'], 'there is nothing to count')
    write(1)
    assert.deepEqual(shown(), ['1'])
    for (let id = 2; id <= 500; id++) write(id)
    assert.deepEqual([shown().length, state.morePosts.value], [500, false])
    write(501)
    assert.deepEqual([shown().length, state.morePosts.value, state.posts.value.has('1')], [500, true, false])
    page.answers.Figures = ({ limit }: { limit: number }) => ({
      posts: posts(501, limit).map(each => ({ ...each, likes: 1 })),
    })
    mock.timers.tick(2000)
    page.tell('focus')
    await settled()
    const liked = state.feed.value.filter(({ likes }: Post) => likes === 1)
    assert.deepEqual(idsOf(liked), idsOf(posts(501, 300)), 'the service refuses to tell the numbers of more')
  })

  it('is read page by page, and anew down to the oldest post that is shown', async () => {
    using page = new StatePage()
    const stored = posts(25)
    const { state, shown } = await feedOf(page, stored)
    await readAnew(state.readFeed) // which shows no more than before
    assert.deepEqual([shown(), state.morePosts.value], [idsOf(stored.slice(0, 10)), true])
    await state.readOlderPosts()
    await state.readOlderPosts()
    assert.deepEqual([shown(), state.morePosts.value], [idsOf(stored), false])
    stored.unshift(...posts(90, 65))
    await readAnew(state.readFeed)
    await waitUntil(() => !state.readFeed.busy.value)
    assert.deepEqual([shown(), page.asked.length], [idsOf(stored), 8], 'four pages')
    stored.unshift(...posts(690, 600))
    await readAnew(state.readFeed)
    await waitUntil(() => !state.readFeed.busy.value)
    assert.deepEqual([shown(), state.morePosts.value], [idsOf(stored.slice(0, 500)), true], 'without a gap')
    for (let count = 0; count < 20; count++) await state.readOlderPosts()
    assert.deepEqual(shown(), idsOf(stored))
    page.event('postAdded', post(691))
    assert.deepEqual(shown(), ['691', ...idsOf(stored.slice(0, -1))], 'it does not grow')
  })

  it('does not show an older post because its page is open or its text was changed while the feed was read', async () => {
    using page = new StatePage()
    const stored = posts(25)
    const { state, shown } = await feedOf(page, stored)
    page.answers.Post = () => ({ post: { ...post(3), comments: [] } })
    const leave = state.openPage('3')
    await settled()
    const send = page.hold('Posts')
    await readAnew(state.readFeed)
    page.event('postUpdated', post(3, { title: 'Changed', updatedAt: at(1) }))
    page.event('postAdded', post(26))
    await send({ posts: stored.slice(0, 10) })
    assert.deepEqual([shown(), state.posts.value.get('3').title], [['26', ...idsOf(stored.slice(0, 10))], 'Changed'])
    leave()
  })

  it('is read again when events arrive, if it could not be read', async () => {
    using page = new StatePage()
    const { state, shown } = await feedOf(page, posts(2))
    assert.equal(state.morePosts.value, false, 'these are all')
    const { Posts: answer } = page.answers
    await reconnect(page, state)
    assert.equal(page.asked.filter(name => name === 'Posts').length, 1, 'no event was missed')
    delete page.answers.Posts
    await readAnew(state.readFeed)
    assert.deepEqual([state.readFeed.problem.value?.kind, shown()], ['offline', ['2', '1']])
    page.answers.Posts = answer ?? assert.fail()
    await reconnect(page, state)
    assert.equal(state.readFeed.problem.value, undefined)
    delete page.answers.Posts
    await readAnew(state.readFeed)
    page.answers.Posts = answer ?? assert.fail()
    page.tell('online')
    await settled()
    assert.equal(state.readFeed.problem.value, undefined, 'also if the socket has stayed open')
  })

  it('reads likes from time to time and at each focus while it is seen, at most every two seconds', async t => {
    stopTime(t)
    using page = new StatePage()
    const { state } = await feedOf(page, posts(2))
    const limits: number[] = []
    page.answers.Figures = ({ limit }: { limit: number }) => {
      limits.push(limit)
      return { posts: [{ id: '2', likes: limits.length, commentCount: 0 }] }
    }
    const often = () => page.intervals.map(run => run())
    const likes = async (passedMs: number) => {
      mock.timers.tick(passedMs)
      await settled()
      return state.posts.value.get('2').likes
    }
    page.document.hidden = true
    often()
    assert.equal(await likes(2000), 0)
    page.document.hidden = false
    often()
    assert.equal(await likes(0), 1)
    for (let count = 0; count < 3; count++) page.tell('focus')
    assert.equal(await likes(1999), 1)
    assert.equal(await likes(1), 2)
    assert.equal(await likes(9000), 2)
    state.go('users')
    await settled()
    page.tell('focus')
    assert.equal(await likes(2000), 2)
    assert.deepEqual(limits, [2, 2])
  })

  it('takes no number of comments from an answer that comes after a newer event, with older posts or new numbers', async () => {
    using page = new StatePage()
    const { state, shown } = await feedOf(page, posts(12))
    page.answers.Post = () => ({ post: { ...post(1), comments: [] } })
    const leave = state.openPage('1') // so that it is known before the feed shows it
    await settled()
    leave()
    const send = page.hold('Posts')
    const reading = state.readOlderPosts()
    page.event('postUpdated', post(1, { title: 'New', commentCount: 2, updatedAt: at(1) }))
    await send({ posts: [post(2), post(1)] })
    await reading
    const { title, commentCount } = state.posts.value.get('1')
    assert.deepEqual([shown().at(-1), title, commentCount], ['1', 'New', 2])

    const sendFigures = page.hold('Figures')
    page.tell('focus')
    await settled()
    page.event('postUpdated', post(12, { commentCount: 2, updatedAt: at(1) }))
    await sendFigures({ posts: [{ id: '12', likes: 3, commentCount: 1 }] })
    const newest = state.posts.value.get('12')
    assert.deepEqual([newest.likes, newest.commentCount], [3, 2])
  })

  it('shows what the user writes without waiting for events', async () => {
    using page = new StatePage()
    const { state } = await feedOf(page, posts(1))
    const known = (id: string): Post | undefined => state.posts.value.get(id)
    page.answers.Create = () => ({ createPost: post(2) })
    await state.createPost(post(2))
    assert.equal(state.feed.value[0].title, 'Post 2')
    page.answers.Update = () => ({ updatePost: post(2, { title: 'New', updatedAt: at(1) }) })
    await state.updatePost('2', { base: post(2), title: 'New', content: 'Text' })
    page.answers.Like = () => ({ likePost: post(2, { likes: 1 }) })
    await state.likePost('2')
    assert.deepEqual([known('2')?.title, known('2')?.likes], ['New', 1])
    page.answers.Post = () => ({ post: { ...post(2), comments: [] } })
    state.openComments('2')
    await settled()
    page.answers.Comment = () => ({ addComment: { ...comment(3), post: { commentCount: 1 } } })
    await state.addComment('2', 'Comment 3')
    assert.equal(known('2')?.comments?.[0]?.text, 'Comment 3')
    const written: unknown[] = []
    page.answers.UpdateComment = (variables: { text: string }) => {
      written.push(variables)
      return { updateComment: comment(3, { text: variables.text, updatedAt: at(1) }) }
    }
    const base = { text: 'Comment 3', updatedAt: at(0) }
    const stored = await state.updateComment('2', '3', { base, text: 'Changed' })
    assert.deepEqual(stored, { text: 'Changed', updatedAt: at(1) })
    await state.updateComment('2', '3', { base, text: 'Comment 3' })
    assert.equal(known('2')?.comments?.[0]?.text, 'Changed')
    assert.deepEqual(written, [{ id: '3', text: 'Changed', ifUpdatedAt: at(0) }])
    page.answers.DeleteComment = page.answers.Delete = () => ({})
    state.commentEdit('3').value = { base: comment(3), text: 'Not sent' }
    await state.deleteComment('2', '3')
    assert.deepEqual([known('2')?.comments, state.commentEdit('3').value], [[], undefined])
    await state.deletePost('2')
    assert.equal(known('2'), undefined)
  })
})
