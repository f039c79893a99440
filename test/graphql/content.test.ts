import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { startTestAppOn } from '../support/app.ts'
import { sqlite } from '../support/engines.ts'
import { assertRefused, query, read, repeat, rowsOf } from '../support/graphql.ts'
import { createMember, logIn, type UserBody } from '../support/rest.ts'
import { shared } from '../support/shared.ts'

type Member = UserBody & { readonly token: string }

describe('Updates, deletions and counts of content', () => {
  const app = shared(() =>
    startTestAppOn(sqlite, { RATE_LIMIT_MAX: '0', LOGIN_LIMIT_MAX: '0', ACCESS_POLICY: 'enforced' }),
  )
  let ann: Member
  let bob: Member
  let eve: Member
  let admin: Member
  before(async () => {
    ;[ann, bob, eve] = [await createMember(app), await createMember(app), await createMember(app)]
    const user = await createMember(app)
    await app.engine.write('setRole', { id: user.id }, 'admin', 'another version')
    admin = { ...user, token: await logIn(app, user.email, 'right password') }
  })

  const idOf = async (text: string, member: Member) => (await read<{ made: { id: string } }>(app, text, member)).made.id
  /** A post of Ann. */
  const newPost = () => idOf('mutation { made: createPost(title: "Title", content: "Content") { id } }', ann)
  /** A comment of Bob on this post. */
  const newComment = (post: string, member = bob) =>
    idOf(`mutation { made: addComment(postId: ${post}, text: "Text") { id } }`, member)

  const state = async () => ({
    posts: await rowsOf(app.engine, 'select id, title, content, likes, comment_count from posts order by id'),
    comments: await rowsOf(app.engine, 'select id, text from comments order by id'),
    outbox: await rowsOf(app.engine, 'select id, kind from outbox order by id'),
  })
  const refused = async (text: string, member: Member | undefined, status: number, code: string, variables = {}) => {
    const before = await state()
    const error = assertRefused(await query(app, text, { token: member?.token, variables }), status, code)
    assert.deepEqual(await state(), before)
    return error
  }
  const countOf = async (post: string) =>
    (await read<{ post: { commentCount: number } }>(app, `{ post(id: ${post}) { commentCount } }`)).post.commentCount

  it('updatePost changes what is given, keeps the rest, and returns the selected fields', async () => {
    const post = await newPost()
    const before = (await read(app, `{ post(id: ${post}) { likes publishedAt author { id } } }`)).post
    const text = `mutation ($title: String, $content: String) {
        updatePost(id: ${post}, title: $title, content: $content) { title content }
      }`
    const update = async (variables: object) =>
      (await read<{ updatePost: object }>(app, text, { variables, token: ann.token })).updatePost
    assert.deepEqual(await update({ title: 'New "title"' }), { title: 'New "title"', content: 'Content' })
    assert.deepEqual(await update({ content: 'New\n\u2028' }), { title: 'New "title"', content: 'New\n\u2028' })
    // Null has the same effect as a missing value.
    assert.deepEqual(await update({ title: null, content: 'C' }), { title: 'New "title"', content: 'C' })
    assert.deepEqual(await update({ title: 'T', content: 'D' }), { title: 'T', content: 'D' })
    assert.deepEqual((await read(app, `{ post(id: ${post}) { likes publishedAt author { id } } }`)).post, before)
    const literal = `mutation { updatePost(id: ${post}, title: "U", content: null) { title content } }`
    assert.deepEqual(await read(app, literal, admin), { updatePost: { title: 'U', content: 'D' } })
  })

  it('updatePost of nothing is refused with 400, before an absent post is noticed', async () => {
    const post = await newPost()
    for (const args of [`id: ${post}`, `id: ${post}, title: null`, 'id: 123456789, title: null, content: null']) {
      const { path } = await refused(`mutation { updatePost(${args}) { id } }`, ann, 400, 'BAD_USER_INPUT')
      assert.deepEqual(path, ['updatePost'])
    }
  })

  it("a comment is deleted by the post's author too, but changed only by its own, and an absent one is not found", async () => {
    const post = await newPost()
    const comment = await newComment(post)
    await refused(`mutation { updateComment(id: ${comment}, text: "New") { text } }`, ann, 403, 'FORBIDDEN')
    const deletion = `mutation { deleteComment(id: ${comment}) }`
    await refused(deletion, eve, 403, 'FORBIDDEN')
    assert.equal(await countOf(post), 1)
    assert.deepEqual(await read(app, deletion, ann), { deleteComment: true })
    assert.equal(await countOf(post), 0)
    for (const id of [comment, '123456789', 'abc']) {
      const update = `mutation { updateComment(id: "${id}", text: "T") { id } }`
      assert.equal((await refused(update, bob, 404, 'NOT_FOUND')).message, 'Comment not found')
      assert.deepEqual(await read(app, `mutation { deleteComment(id: "${id}") }`, eve), { deleteComment: false })
    }
    await refused('mutation { updatePost(id: "123456789", title: "T") { id } }', ann, 404, 'NOT_FOUND')
  })

  it('their texts follow the rules of new ones, and count toward the 1 MiB of an operation', async () => {
    const post = await newPost()
    const comment = await newComment(post)
    const changes: readonly (readonly [name: string, text: string, longest: number, member: Member])[] = [
      ['title', `mutation ($v: String) { updatePost(id: ${post}, title: $v) { id } }`, 300, ann],
      ['content', `mutation ($v: String) { updatePost(id: ${post}, content: $v) { id } }`, 65_536, ann],
      ['text', `mutation ($v: String!) { updateComment(id: ${comment}, text: $v) { id } }`, 65_536, bob],
    ]
    for (const [name, text, longest, member] of changes) {
      const controls = longest > 1000 ? ['\u0001'.repeat(300).padEnd(2000, 'x')] : []
      for (const v of ['', ' \n', 'a\u0000b', '\ud800', 'x'.repeat(longest + 1), ...controls]) {
        const { message } = await refused(text, member, 400, 'BAD_USER_INPUT', { v })
        assert.ok(message.startsWith(name), message)
      }
      await read(app, text, { variables: { v: 'x'.repeat(longest) }, token: member.token })
    }
    const v = 'é'.repeat(32_768)
    for (const [field, member] of [
      [`updatePost(id: ${post}, content: $v)`, ann],
      [`updateComment(id: ${comment}, text: $v)`, bob],
    ] as const) {
      const text = (count: number) => `mutation ($v: String!) { ${repeat(count, n => `a${n}: ${field} { id }`)} }`
      await read(app, text(16), { variables: { v }, token: member.token })
      await refused(text(17), member, 400, 'BAD_USER_INPUT', { v })
    }
  })

  it('a comment has its instant and its post, and a post the number of its comments', async () => {
    const post = await newPost()
    const earliest = Date.now()
    const text = `mutation { addComment(postId: ${post}, text: "T") { createdAt post { id commentCount author { name } } } }`
    type Made = { readonly addComment: { readonly createdAt: string; readonly post: object } }
    const { addComment } = await read<Made>(app, text, bob)
    assert.deepEqual(addComment.post, { id: post, commentCount: 1, author: { name: ann.name } })
    assert.match(addComment.createdAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    const created = Date.parse(addComment.createdAt)
    assert.ok(created >= earliest - 1 && created <= Date.now(), addComment.createdAt)
    const nested = `{ post(id: ${post}) { comments { createdAt post { id comments { id } } } } }`
    const { post: shown } = await read<{ post: { comments: readonly Made['addComment'][] } }>(app, nested)
    assert.equal(shown.comments[0]?.createdAt, addComment.createdAt)
  })

  it('a number of comments costs 1 and a post of a comment 5, and it counts for the depth', async () => {
    const cost = async (text: string) => (await refused(text, ann, 400, 'COMPLEXITY_LIMIT_EXCEEDED')).extensions.cost
    assert.equal(await cost('{ posts(limit: 501) { id commentCount } }'), 1002)
    assert.equal(await cost('{ posts(limit: 20) { comments { post { id } } } }'), 1200)
    const nested = (inner: string) =>
      `{ posts(limit: 1) { comments(limit: 1) { post { comments(limit: 1) { post { ${inner} } } } } } }`
    await read(app, nested('id'))
    await refused(nested('author { id }'), ann, 400, 'DEPTH_LIMIT_EXCEEDED')
  })

  it('e-mails of others are shown to admins only', async () => {
    const post = await newPost()
    const comment = await newComment(post, ann)
    for (const text of [
      `mutation { updatePost(id: ${post}, title: "New") { author { email } } }`,
      `mutation { updateComment(id: ${comment}, text: "New") { author { email } } }`,
      `mutation { updateComment(id: ${comment}, text: "New") { post { author { email } } } }`,
      `mutation { addComment(postId: ${post}, text: "New") { post { author { email } } } }`,
      '{ posts(limit: 1) { comments { post { author { email } } } } }',
    ]) {
      await refused(text, ann, 403, 'FORBIDDEN')
      await read(app, text, admin)
    }
  })
})
