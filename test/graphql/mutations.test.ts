import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { startTestAppOn } from '../support/app.ts'
import { engineKinds } from '../support/engines.ts'
import { assertRefused, query, read, rowsOf } from '../support/graphql.ts'
import { createMember, logIn, type Member } from '../support/rest.ts'
import { shared } from '../support/shared.ts'

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
      const { id, email, name } = await createMember(app)
      await app.engine.write('setRole', { id }, 'admin', 'another version')
      admin = { id, email, name, token: await logIn(app, email, 'right password') }
    })

    const newPost = async ({ token }: Member = ann): Promise<string> => {
      const variables = { title: 'T', content: 'C' }
      const { createPost } = await read<{ createPost: { id: string } }>(app, create, { variables, token })
      return createPost.id
    }

    /** All rows that a mutation may change, and all events. */
    const state = async () => ({
      posts: await rowsOf(
        app.engine,
        'select id, author_id, title, content, likes, published_at from posts order by id',
      ),
      comments: await rowsOf(app.engine, 'select id, post_id, author_id, text, created_at from comments order by id'),
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
      const gone = await newPost()
      await read(app, `mutation { deletePost(id: ${gone}) }`, ann)
      assert.ok(Number(await newPost()) > Number(gone), 'its id is not used again')
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
  })
}
