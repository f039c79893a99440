import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { startTestAppOn } from '../support/app.ts'
import { sqlite } from '../support/engines.ts'
import { assertRefused, query, read, repeat, rowsOf } from '../support/graphql.ts'
import { createMember, logIn, type Member } from '../support/rest.ts'
import { shared } from '../support/shared.ts'

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

  // The texts may be long, and those that are accepted are read elsewhere.
  const state = async () => ({
    posts: await rowsOf(
      app.engine,
      'select id, title, octet_length(content), likes, comment_count from posts order by id',
    ),
    comments: await rowsOf(app.engine, 'select id, octet_length(text) from comments order by id'),
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

  /** Each change that stores a text: its name in errors, the change with the text as `$v`, and its greatest length. */
  const changesOf = (post: string, comment: string): readonly (readonly [string, string, number])[] => [
    ['title', 'createPost(title: $v, content: "C")', 300],
    ['content', 'createPost(title: "T", content: $v)', 65_536],
    ['text', `addComment(postId: ${post}, text: $v)`, 65_536],
    ['title', `updatePost(id: ${post}, title: $v)`, 300],
    ['content', `updatePost(id: ${post}, content: $v)`, 65_536],
    ['text', `updateComment(id: ${comment}, text: $v)`, 65_536],
  ]
  const longChanges = (post: string, comment: string) => changesOf(post, comment).filter(([, , most]) => most > 1000)

  it('blank, too long or malformed texts are refused with 400, and the longest allowed text is accepted', async () => {
    const post = await newPost()
    for (const [name, change, most] of changesOf(post, await newComment(post, ann))) {
      const text = `mutation ($v: String!) { ${change} { id } }`
      const wrong = ['', '\t\n\u00a0\u2003', 'a\u0000b', 'a\ud800b', '\udc00', 'x\ud83d', 'x'.repeat(most + 1)]
      for (const v of wrong) {
        const { message } = await refused(text, ann, 400, 'BAD_USER_INPUT', { v })
        assert.ok(message.startsWith(name), message)
      }
      for (const v of ['x'.repeat(most), 'é'.repeat(most), '🎈'.repeat(most / 2)])
        await read(app, text, { variables: { v }, token: ann.token })
    }
    await refused('mutation { createPost(title: "a\\uD800", content: "C") { id } }', ann, 400, 'GRAPHQL_PARSE_FAILED')
  })

  it('a long text of control characters is refused with 400, and a short one is accepted', async () => {
    const post = await newPost()
    const mixed = (length: number, controls: number) => '\u001f'.repeat(controls).padEnd(length, 'x')
    for (const [, change] of longChanges(post, await newComment(post, ann))) {
      const text = `mutation ($v: String!) { ${change} { id } }`
      for (const v of [mixed(1_001, 102), '\u0001'.repeat(65_536)])
        await refused(text, ann, 400, 'BAD_USER_INPUT', { v })
      for (const v of ['\u0001'.repeat(1_000), mixed(1_001, 100), '\n\t\r\b\f"\\'.repeat(9_000)])
        await read(app, text, { variables: { v }, token: ann.token })
    }
  })

  it('an operation with more than 1 MiB of text, counting each use of a variable, stores nothing', async () => {
    const post = await newPost()
    const changes = longChanges(post, await newComment(post, ann)).map(([, change]) => change)
    const operation = (count: number) => `mutation ($v: String!, $last: String!) {
      ${repeat(count, n => `a${n}: ${changes[n % changes.length]} { id }`)}
      last: addComment(postId: ${post}, text: $last) { id }
    }`
    for (const [v, count] of [
      ['x'.repeat(65_536), 15],
      ['é'.repeat(65_000), 8],
      ['€'.repeat(42_000), 8],
    ] as const) {
      const titles = Math.ceil(count / changes.length) // of one byte each, one for each post
      const left = 1024 * 1024 - count * Buffer.byteLength(v) - titles
      const tooMuch = { v, last: 'x'.repeat(left + 1) }
      const { message, path } = await refused(operation(count), ann, 400, 'BAD_USER_INPUT', tooMuch)
      assert.deepEqual([message, path], ['An operation stores at most 1048576 bytes of text', undefined])
      await read(app, operation(count), { variables: { v, last: 'x'.repeat(left) }, token: ann.token })
    }
    const far = { v: 'x'.repeat(65_536), last: 'x' }
    await refused(operation(60), ann, 400, 'BAD_USER_INPUT', far)
    await refused(operation(60), undefined, 401, 'UNAUTHENTICATED', far)
  })

  it('the error about a text contains its name and path, and comes before the error about an absent post', async () => {
    const absent = 'other: likePost(id: 123456789) { id }'
    const text = (title: string) => `mutation { ${absent} mine: createPost(title: "${title}", content: "C") { id } }`
    for (const [title, expected] of [
      [' ', 'title must not be empty'],
      ['x'.repeat(301), 'title must be at most 300 characters long'],
    ] as const) {
      const { message, path } = await refused(text(title), ann, 400, 'BAD_USER_INPUT')
      assert.deepEqual([message, path], [expected, ['mine']])
    }
  })
})
