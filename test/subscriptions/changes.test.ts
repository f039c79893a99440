import assert from 'node:assert/strict'
import { afterEach, before, beforeEach, describe, it } from 'node:test'
import { startTestAppOn } from '../support/app.ts'
import { engineKinds } from '../support/engines.ts'
import { assertRefused, query, read } from '../support/graphql.ts'
import { createMember, send, type UserBody } from '../support/rest.ts'
import { shared } from '../support/shared.ts'
import { type Operation, SocketClient } from '../support/sockets.ts'

type Member = UserBody & { readonly token: string }

for (const kind of engineKinds) {
  describe(`Changes of posts and comments on ${kind.name}`, { skip: kind.skip }, () => {
    const app = shared(() => startTestAppOn(kind, { RATE_LIMIT_MAX: '0', LOGIN_LIMIT_MAX: '0' }))
    let ann: Member
    let bob: Member
    let client: SocketClient
    /** The end of the log when the test began. */
    let position: string
    before(async () => {
      ;[ann, bob] = [await createMember(app), await createMember(app)]
    })
    beforeEach(async () => {
      client = await SocketClient.open(app)
      await client.initialise({ positions: true })
      const [acknowledged] = client.messages
      position = Object(acknowledged?.payload).position
    })
    afterEach(() => client[Symbol.dispose]())

    const change = async (fields: string, member = ann) =>
      Object.values(await read<Record<string, { id: string }>>(app, `mutation { ${fields} }`, member)).map(
        ({ id }) => id,
      )
    const newPost = async (member = ann) =>
      (await change('createPost(title: "T", content: "C") { id }', member))[0] ?? assert.fail()
    const newComment = async (post: string, member = ann) =>
      (await change(`addComment(postId: ${post}, text: "T") { id }`, member))[0] ?? assert.fail()
    /** All events since the test began, and later ones. */
    const watch = (field: string, on = client) =>
      on.begin(`subscription { ${field} }`, undefined, { extensions: { after: position } })
    const told = ({ events }: Operation) => events.flatMap(event => Object.values(event as object))

    it('are told by the subscription of their kind, live and after a cut, with the selected fields', async () => {
      const [post, other] = [await newPost(), await newPost()]
      const [comment, doomed] = [await newComment(post), await newComment(post, bob)]
      const [elsewhere] = [await newComment(other)]
      const all = (on: SocketClient) => [
        watch('postUpdated { id title updatedAt author { name } }', on),
        watch('...F } fragment F on Subscription { gone: postDeleted', on),
        watch(`said: commentUpdated(postId: ${post}) { id text post { id } }`, on),
        watch(`commentDeleted(postId: "${post}")`, on),
      ]
      const live = all(client)
      const changes = [
        `updatePost(id: ${post}, title: "T") { id }`, // the same title: an update nevertheless
        `updateComment(id: ${comment}, text: "New") { id }`,
        ...[`updateComment(id: ${elsewhere}, text: "New") { id }`, `likePost(id: ${post}) { id }`],
        ...[`deleteComment(id: ${doomed})`, `deleteComment(id: ${elsewhere})`],
        `deletePost(id: ${other})`,
      ]
      for (const each of changes) await change(each)
      for (const each of live) await each.received(1)
      const lost = `a: updatePost(id: ${post}, title: "Lost") { id } b: deleteComment(id: ${comment}) c: likePost(id: 987654321) { id }`
      assertRefused(await query(app, `mutation { ${lost} }`, ann), 404, 'NOT_FOUND')
      await change(`updatePost(id: ${post}, content: "Now") { id }`)
      await live[0]?.received(2)
      using late = await SocketClient.connect(app)
      const resumed = all(late)
      await resumed[0]?.received(2)
      for (const each of resumed) await each.received(1)
      const { post: now } = await read<{ post: { updatedAt: string } }>(app, `{ post(id: ${post}) { updatedAt } }`)
      const shown = { id: post, title: 'T', author: { name: ann.name } }
      const [updates = [], ...rest] = live.map(told)
      assert.deepEqual(
        updates.map(each => ({ ...each, updatedAt: '' })),
        [shown, shown].map(each => ({ ...each, updatedAt: '' })),
      )
      assert.equal(updates[1]?.updatedAt, now.updatedAt)
      assert.deepEqual(rest, [[other], [{ id: comment, text: 'New', post: { id: post } }], [doomed]])
      assert.deepEqual(live[1]?.events, [{ gone: other }])
      assert.deepEqual(
        resumed.map(each => each.positions),
        live.map(each => each.positions),
      )
      assert.deepEqual(resumed.slice(1).map(told), rest)
    })

    it('of the comments of a post end with the post, which is told once and its comments not', async () => {
      const post = await newPost()
      const comment = await newComment(post)
      const ending = [
        watch(`commentUpdated(postId: ${post}) { id }`),
        watch(`commentDeleted(postId: ${post})`),
        watch(`commentAdded(postId: ${post}) { id }`),
      ]
      const [posts, updated] = [watch('postDeleted'), watch('postUpdated { id }')]
      await change(`updateComment(id: ${comment}, text: "New") { id }`)
      await ending[0]?.received(1)
      await change(`updatePost(id: ${post}, title: "New") { id } deletePost(id: ${post})`)
      for (const each of ending) await each.over()
      assert.deepEqual(ending.map(told), [[{ id: comment }], [], [{ id: comment }]])
      assert.deepEqual(
        ending.map(({ errors }) => errors),
        [undefined, undefined, undefined],
      )
      const last = await newPost()
      await change(
        `updatePost(id: ${last}, title: "New") { id } b: deletePost(id: "${post}") deletePost(id: "${last}")`,
      )
      await posts.received(2)
      assert.deepEqual(told(posts), [post, last])
      // Both posts were deleted by the operation that had updated them.
      assert.deepEqual(told(updated), [])
      for (const field of ['commentUpdated(postId: 987654321) { id }', `commentDeleted(postId: ${post})`]) {
        const { errors } = await client.ask(`subscription { it: ${field} }`)
        assert.deepEqual(errors, [{ message: 'Post not found', path: ['it'], extensions: { code: 'NOT_FOUND' } }])
      }
    })

    it("tell of each post of a deleted user, and of each comment on others' posts", async () => {
      const author = await createMember(app)
      const [own, foreign] = [await newPost(author), await newPost()]
      const comments = [await newComment(foreign, author), await newComment(foreign, author)]
      await newComment(own, author)
      const kept = await newComment(foreign, bob)
      const [posts, deleted] = [watch('postDeleted'), watch(`commentDeleted(postId: ${foreign})`)]
      await send(app, `DELETE /users/${author.id}`, undefined, author.token)
      await change(`deleteComment(id: ${kept}) deletePost(id: ${foreign})`)
      await deleted.over()
      await posts.received(2)
      assert.deepEqual(
        [told(deleted), told(posts)],
        [
          [...comments, kept],
          [own, foreign],
        ],
      )
    })
  })
}
