import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { startTestAppOn } from '../support/app.ts'
import { engineKinds } from '../support/engines.ts'
import { assertRefused, query, read, repeat, rowsOf } from '../support/graphql.ts'
import { createMember, send, type UserBody } from '../support/rest.ts'
import { shared } from '../support/shared.ts'

type Member = UserBody & { readonly token: string }

const create = 'mutation ($title: String!, $content: String!) { createPost(title: $title, content: $content) { id } }'
const comment = 'mutation ($post: ID!, $text: String!) { addComment(postId: $post, text: $text) { id } }'

for (const kind of engineKinds) {
  describe(`Mutations on ${kind.name}`, { skip: kind.skip }, () => {
    const app = shared(() => startTestAppOn(kind, { RATE_LIMIT_MAX: '0', LOGIN_LIMIT_MAX: '0' }))
    let ann: Member
    let bob: Member
    let admin: Member
    before(async () => {
      ann = await createMember(app)
      bob = await createMember(app)
      const { id, email } = await createMember(app)
      await app.engine.write('setRole', { id }, 'admin', 'another version')
      const { body } = await send(app, 'POST /tokens', { email, password: 'right password' })
      admin = { id, email, name: 'Admin', token: JSON.parse(body).token }
    })

    const newPost = async ({ token }: Member = ann): Promise<string> => {
      const variables = { title: 'T', content: 'C' }
      const { createPost } = await read<{ createPost: { id: string } }>(app, create, { variables, token })
      return createPost.id
    }

    /** All rows that a mutation may change, and all events. */
    // No mutation changes a text, so its length says enough; the tests before this one may have stored long ones.
    const state = async () => ({
      posts: await rowsOf(
        app.engine,
        'select id, author_id, title, octet_length(content), likes, published_at from posts order by id',
      ),
      comments: await rowsOf(
        app.engine,
        'select id, post_id, author_id, octet_length(text), created_at from comments order by id',
      ),
      outbox: await rowsOf(app.engine, 'select kind, post_id, comment_id, user_id from outbox order by id'),
    })

    /** Checks that a mutation is refused with this error and has changed nothing. */
    const refused = async (text: string, member: Member | undefined, status: number, code: string, variables = {}) => {
      const before = await state()
      const error = assertRefused(await query(app, text, { token: member?.token, variables }), status, code)
      assert.deepEqual(await state(), before)
      return error
    }

    it("R-GQL-4, R-GQL-20, R-GQL-26, R-GQL-27: createPost publishes a post of the token's user and returns the selected fields", async () => {
      const text = `mutation ($title: String!, $content: String!) {
        made: createPost(title: $title, content: $content) {
          id title content likes publishedAt author { id name } comments { id }
        }
      }`
      const values = { title: 'Zoë\'s "first" 🎈', content: 'One\n\ttwo \\ three\u2028' }
      const earliest = Date.now()
      const { made } = await read<{ made: Record<string, unknown> }>(app, text, { variables: values, token: bob.token })
      const { id, publishedAt, ...shown } = made
      const author = { id: String(bob.id), name: bob.name }
      assert.deepEqual(shown, { ...values, likes: 0, author, comments: [] })
      const published = Date.parse(String(publishedAt))
      assert.ok(published >= earliest - 1 && published <= Date.now(), `published at ${publishedAt}`)
      const { post } = await read(app, `{ post(id: ${id}) { title content author { id name } publishedAt } }`)
      assert.deepEqual(post, { ...values, author, publishedAt })
    })

    it('R-GQL-29: likePost adds one like at every call, by any caller, also within one operation, and returns the post', async () => {
      const post = await newPost()
      const like = `mutation { likePost(id: ${post}) { id likes author { name } } }`
      assert.deepEqual(await read(app, like), { likePost: { id: post, likes: 1, author: { name: ann.name } } })
      assert.deepEqual(await read(app, like, bob), { likePost: { id: post, likes: 2, author: { name: ann.name } } })
      const twice = `mutation { a: likePost(id: ${post}) { likes } b: likePost(id: ${post}) { likes } }`
      assert.deepEqual(await read(app, twice), { a: { likes: 3 }, b: { likes: 4 } })
    })

    it('R-GQL-29: of 50 concurrent likes none is lost, and each answer has a different number', async () => {
      const post = await newPost()
      const like = `mutation { likePost(id: ${post}) { likes } }`
      const answers = await Promise.all(
        Array.from({ length: 50 }, () => read<{ likePost: { likes: number } }>(app, like)),
      )
      const numbers = answers.map(({ likePost }) => likePost.likes).sort((one, other) => one - other)
      assert.deepEqual(
        numbers,
        Array.from({ length: 50 }, (_, index) => index + 1),
      )
      assert.deepEqual(await read(app, `{ post(id: ${post}) { likes } }`), { post: { likes: 50 } })
    })

    it('R-GQL-28: deletePost deletes a post with its comments and returns true, or false if there is no such post', async () => {
      for (const who of [ann, admin]) {
        const post = await newPost()
        await read(app, comment, { variables: { post, text: 'Hi' }, token: bob.token })
        assert.deepEqual(await read(app, `mutation { deletePost(id: ${post}) }`, who), { deletePost: true })
        assert.deepEqual(await read(app, `{ post(id: ${post}) { id } }`), { post: null })
        assert.deepEqual(await rowsOf(app.engine, `select count(*) from comments where post_id = ${post}`), [[0]])
        assert.deepEqual(await read(app, `mutation { deletePost(id: ${post}) }`, who), { deletePost: false })
      }
      for (const id of ['abc', '0', '01', '9007199254740993', "1' or '1'='1"]) {
        const text = 'mutation ($id: ID!) { deletePost(id: $id) }'
        assert.deepEqual(await read(app, text, { variables: { id }, token: bob.token }), { deletePost: false }, id)
      }
    })

    it('likePost and addComment of an absent post are refused with 404 and no data', async () => {
      for (const id of ['123456789', 'abc', '0', '01', '-1', '1e0', '9007199254740993', '']) {
        const like = 'mutation ($post: ID!) { likePost(id: $post) { id } }'
        const variables = { post: id, text: 'Hi' }
        const { message, path } = await refused(like, undefined, 404, 'NOT_FOUND', variables)
        assert.deepEqual([message, path], ['Post not found', ['likePost']])
        await refused(comment, ann, 404, 'NOT_FOUND', variables)
      }
    })

    it('blank, too long or malformed texts are refused with 400, and the longest allowed text is accepted', async () => {
      const post = await newPost()
      const of = (length: number) => 'x'.repeat(length)
      const wrong = ['', ' ', '\t\n\u00a0\u2003', 'a\u0000b', '\u0000', 'a\ud800b', '\udc00', 'x\ud83d']
      for (const title of [...wrong, of(301)]) {
        await refused(create, ann, 400, 'BAD_USER_INPUT', { title, content: 'C' })
      }
      for (const content of [...wrong, of(65_537)]) {
        await refused(create, ann, 400, 'BAD_USER_INPUT', { title: 'T', content })
        await refused(comment, ann, 400, 'BAD_USER_INPUT', { post, text: content })
      }
      await refused('mutation { createPost(title: "a\\u0000", content: "C") { id } }', ann, 400, 'BAD_USER_INPUT')
      await refused('mutation { createPost(title: "a\\uD800", content: "C") { id } }', ann, 400, 'GRAPHQL_PARSE_FAILED')
      for (const [title, content] of [
        [of(300), of(65_536)],
        ['🎈'.repeat(150), 'é'.repeat(65_536)],
      ]) {
        const longest = { variables: { title, content, post, text: content }, token: ann.token }
        await read(app, create, longest)
        await read(app, comment, longest)
      }
    })

    it('a long text of control characters is refused with 400, and a short one is accepted', async () => {
      const post = await newPost()
      const mixed = (length: number, controls: number) => '\u001f'.repeat(controls).padEnd(length, 'x')
      for (const content of [mixed(1_001, 102), '\u0001'.repeat(65_536)]) {
        await refused(create, ann, 400, 'BAD_USER_INPUT', { title: 'T', content })
        await refused(comment, ann, 400, 'BAD_USER_INPUT', { post, text: content })
      }
      for (const content of ['\u0001'.repeat(1_000), mixed(1_001, 100), '\n\t\r\b\f"\\'.repeat(9_000)]) {
        const passing = { variables: { title: 'T', content, post, text: content }, token: ann.token }
        await read(app, create, passing)
        await read(app, comment, passing)
      }
    })

    it('an operation with more than 1 MiB of text, counting each use of a variable, stores nothing', async () => {
      const post = await newPost()
      const operation = (posts: number, comments: number) => `mutation ($c: String!, $last: String!) {
        ${repeat(posts, n => `p${n}: createPost(title: "T", content: $c) { id }`)}
        ${repeat(comments, n => `c${n}: addComment(postId: ${post}, text: $c) { id }`)}
        last: addComment(postId: ${post}, text: $last) { id }
      }`
      const expected = 'An operation stores at most 1048576 bytes of text'
      for (const [c, posts, comments] of [
        ['x'.repeat(65_536), 7, 8],
        ['é'.repeat(65_000), 4, 4],
        ['€'.repeat(42_000), 2, 6],
      ] as const) {
        const left = 1024 * 1024 - (posts + comments) * Buffer.byteLength(c) - posts
        const asked = (last: string) => ({ variables: { c, last }, token: ann.token })
        const { message, path } = await refused(operation(posts, comments), ann, 400, 'BAD_USER_INPUT', {
          c,
          last: 'x'.repeat(left + 1),
        })
        assert.deepEqual([message, path], [expected, undefined])
        await read(app, operation(posts, comments), asked('x'.repeat(left)))
      }
      const { message } = await refused(operation(60, 0), ann, 400, 'BAD_USER_INPUT', {
        c: 'x'.repeat(65_536),
        last: 'x',
      })
      assert.equal(message, expected)
      await refused(operation(60, 0), undefined, 401, 'UNAUTHENTICATED', { c: 'x'.repeat(65_536), last: 'x' })
    })

    it('the error about a text contains its name and path, and comes before the error about an absent post', async () => {
      const text =
        'mutation { other: likePost(id: 123456789) { id } mine: createPost(title: " ", content: "C") { id } }'
      const { message, path } = await refused(text, ann, 400, 'BAD_USER_INPUT')
      assert.deepEqual([message, path], ['title must not be empty', ['mine']])
      const long = await refused(create, ann, 400, 'BAD_USER_INPUT', { title: 'x'.repeat(301), content: 'C' })
      assert.equal(long.message, 'title must be at most 300 characters long')
    })

    it('an operation that fails does not affect concurrent ones', async () => {
      const post = await newPost()
      const likes = Array.from({ length: 20 }, () => read(app, `mutation { likePost(id: ${post}) { likes } }`))
      const failing = Array.from({ length: 20 }, () =>
        query(app, `mutation { likePost(id: ${post}) { likes } other: likePost(id: 123456789) { id } }`),
      )
      for (const answer of await Promise.all(failing)) assertRefused(answer, 404, 'NOT_FOUND')
      await Promise.all(likes)
      assert.deepEqual(await read(app, `{ post(id: ${post}) { likes } }`), { post: { likes: 20 } })
    })

    it('deleting a user deletes its posts and comments, and their ids are not used again', async () => {
      const carl = await createMember(app)
      const own = await newPost(carl)
      const post = await newPost()
      await read(app, comment, { variables: { post, text: 'By Carl' }, token: carl.token })
      await send(app, `DELETE /users/${carl.id}`)
      assert.deepEqual(await read(app, `{ own: post(id: ${own}) { id } post(id: ${post}) { comments { id } } }`), {
        own: null,
        post: { comments: [] },
      })
      await read(app, `mutation { deletePost(id: ${post}) }`, ann)
      assert.ok(Number(await newPost()) > Number(post))
    })
  })
}
