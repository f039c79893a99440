import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { startTestAppOn } from '../support/app.ts'
import { sqlite } from '../support/engines.ts'
import { assertRefused, dataOf, query, read } from '../support/graphql.ts'
import { createMember, logIn, type Member } from '../support/rest.ts'
import { shared } from '../support/shared.ts'

/** `:me` is replaced by the id of the caller, `:other` by the id of another user, `:post` by the id of a post of another user, `:comment` by that of a comment on it. */
const othersEmails: readonly string[] = [
  '{ users { email } }',
  '{ user(id: ":other") { email } }',
  '{ user(id: "abc") { email } }',
  '{ a: user(id: ":me") { id } b: user(id: ":other") { mine: email } }',
  '{ ...F } fragment F on Query { user(id: ":other") { ...G } } fragment G on User { ... { email } }',
  '{ user(id: ":other") { ... on User { email @include(if: true) } } }',
  '{ posts { author { email } } }',
  '{ post(id: ":post") { author { email } } }',
  '{ posts(limit: 1) { comments { post { author { email } } } } }',
  '{ posts(publishedAfter: "2999-01-01T00:00Z") { author { email } } }',
  // The caller's own e-mail, but as the author of a post or comment.
  '{ user(id: ":me") { posts { author { email } } } }',
  '{ me { posts { author { email } } } }',
]

const ownEmails: readonly string[] = [
  '{ me { email } }',
  '{ posts { id } ...F } fragment F on Query { a: me { ...G } } fragment G on User { ... on User { email } }',
  '{ user(id: ":me") { email } }',
  '{ user(id: :me) { id email posts { id } } other: user(id: ":other") { name } }',
]

const changesThatShowOthers: readonly string[] = [
  'mutation { a: likePost(id: ":post") { ...F } } fragment F on Post { author { e: email } }',
  'mutation { likePost(id: ":post") { comments { author { email } } } }',
  'mutation { createPost(title: "T", content: "C") { author { posts { author { email } } } } }',
  'mutation { updatePost(id: ":post", title: "New") { author { email } } }',
  'mutation { updateComment(id: ":comment", text: "New") { author { email } } }',
  'mutation { updateComment(id: ":comment", text: "New") { post { author { email } } } }',
  'mutation { addComment(postId: ":post", text: "New") { post { author { email } } } }',
  'mutation { createPost(title: "T", content: "C") { id } likePost(id: ":post") { author { email } } }',
]

const changesThatShowOneself: readonly string[] = [
  'mutation { createPost(title: "T", content: "C") { author { email } } }',
  'mutation { a: createPost(title: "T", content: "C") { b: author { ...F } } } fragment F on User { c: email }',
  'mutation { addComment(postId: ":post", text: "x") { author { email name } } }',
]

const withoutEmails: readonly string[] = [
  '{ users(limit: 5) { id name avatar createdAt posts(limit: 2) { id comments(limit: 2) { author { name } } } } }',
  '{ user(id: ":other") { name posts { title author { name } } } }',
  '{ user(id: ":other") { name email @skip(if: true) } }',
  '{ user(id: ":other") { name ...F @include(if: false) } } fragment F on User { email }',
  '{ email: user(id: ":other") { email: name } }',
  '{ me @skip(if: true) { id } __typename }',
  '{ __type(name: "User") { fields { name } } }',
]

describe('Access to fields', () => {
  const app = shared(() =>
    startTestAppOn(sqlite, { RATE_LIMIT_MAX: '0', ACCESS_POLICY: 'enforced', LOGIN_LIMIT_MAX: '0' }),
  )
  let ann: Member
  let bob: Member
  let admin: Member
  let post: string
  let comment: string
  before(async () => {
    ann = await createMember(app)
    bob = await createMember(app)
    const { id, email, name } = await createMember(app)
    await app.engine.write('setRole', { id }, 'admin', 'another version')
    admin = { id, email, name, token: await logIn(app, email, 'right password') }
    const text = 'mutation { createPost(title: "T", content: "C") { id } }'
    post = (await read<{ createPost: { id: string } }>(app, text, bob)).createPost.id
    const addition = `mutation { addComment(postId: ${post}, text: "Hi") { id } }`
    comment = (await read<{ addComment: { id: string } }>(app, addition, ann)).addComment.id
  })

  const filled = (text: string, me: Member = ann) =>
    text
      .replaceAll(':me', String(me.id))
      .replaceAll(':other', String(bob.id))
      .replaceAll(':post', post)
      .replaceAll(':comment', comment)
  const likes = async () =>
    (await read<{ post: { likes: number } }>(app, filled('{ post(id: ":post") { likes } }'))).post.likes

  it('only admins see e-mails of others: 401 without a token and 403 with one, for every form of selection', async () => {
    for (const text of othersEmails) {
      assertRefused(await query(app, filled(text)), 401, 'UNAUTHENTICATED', 'Authentication required')
      const refusal = await query(app, filled(text), ann)
      assertRefused(refusal, 403, 'FORBIDDEN', 'Not permitted')
      assert.doesNotMatch(refusal.body, /@/)
      dataOf(await query(app, filled(text, admin), admin))
    }
  })

  it('R-GQL-24: me is the user of the token, and users see their own e-mail on me and on user(id) with their id, and callers without a token do not', async () => {
    for (const text of ownEmails) {
      assertRefused(await query(app, filled(text)), 401, 'UNAUTHENTICATED')
      for (const member of [ann, admin]) {
        const { body } = await query(app, filled(text, member), member)
        assert.ok(body.includes(member.email), body)
      }
    }
    const text = 'query ($id: ID!) { user(id: $id) { email } }'
    const asked = (id: unknown) => query(app, text, { variables: { id }, token: ann.token })
    for (const id of [ann.id, String(ann.id)]) assert.deepEqual(dataOf(await asked(id)), { user: { email: ann.email } })
    const conditional = 'query ($if: Boolean!) { user(id: ":other") { name email @include(if: $if) } }'
    for (const wanted of [false, true, false, true]) {
      const response = await query(app, filled(conditional), { variables: { if: wanted }, token: ann.token })
      if (wanted) assertRefused(response, 403, 'FORBIDDEN')
      else assert.deepEqual(dataOf(response), { user: { name: bob.name } })
    }
    for (const id of [bob.id, `0${ann.id}`, ` ${ann.id}`, '123456789']) assertRefused(await asked(id), 403, 'FORBIDDEN')
  })

  it('users see their e-mail on the author of a post or comment they just created, but no other e-mail through a change', async () => {
    const before = await likes()
    for (const text of changesThatShowOthers) {
      assertRefused(await query(app, filled(text)), 401, 'UNAUTHENTICATED')
      assertRefused(await query(app, filled(text), ann), 403, 'FORBIDDEN')
    }
    assert.equal(await likes(), before, 'no change took effect')
    assert.deepEqual(await read(app, `{ user(id: ${ann.id}) { posts { id } } }`), { user: { posts: [] } })
    for (const text of changesThatShowOneself) {
      assertRefused(await query(app, filled(text)), 401, 'UNAUTHENTICATED')
      assert.ok(JSON.stringify(await read(app, filled(text), ann)).includes(ann.email), text)
    }
    for (const text of changesThatShowOthers) dataOf(await query(app, filled(text), admin))
  })

  it('every caller may read all other fields of users, posts and comments', async () => {
    for (const text of withoutEmails) {
      for (const token of [undefined, ann.token])
        assert.doesNotMatch(JSON.stringify(await read(app, filled(text), { token })), /@/)
    }
  })
})
