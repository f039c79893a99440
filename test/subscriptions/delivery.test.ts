import assert from 'node:assert/strict'
import { afterEach, before, beforeEach, describe, it } from 'node:test'
import { startTestAppOn } from '../support/app.ts'
import { engineKinds } from '../support/engines.ts'
import { assertRefused, query, read, repeat } from '../support/graphql.ts'
import { createMember, type Member, send } from '../support/rest.ts'
import { shared } from '../support/shared.ts'
import { type Operation, SocketClient } from '../support/sockets.ts'

const create = 'mutation ($text: String!) { createPost(title: $text, content: $text) { id } }'
const comment = 'mutation ($post: ID!, $text: String!) { addComment(postId: $post, text: $text) { id } }'
const commentsOf = 'subscription ($post: ID!) { commentAdded(postId: $post) { id } }'

for (const kind of engineKinds) {
  describe(`Events on ${kind.name}`, { skip: kind.skip }, () => {
    const app = shared(() => startTestAppOn(kind, { RATE_LIMIT_MAX: '0', LOGIN_LIMIT_MAX: '0' }))
    let ann: Member
    let bob: Member
    let client: SocketClient
    /** The end of the log when the test began. */
    let position: string
    before(async () => {
      ann = await createMember(app)
      bob = await createMember(app)
    })

    beforeEach(async () => {
      client = await SocketClient.open(app)
      await client.initialise({ positions: true })
      position = Object(client.messages[0]?.payload).position
    })
    afterEach(() => client[Symbol.dispose]())

    const newPost = async (text: string, { token }: { token: string } = ann): Promise<string> =>
      (await read<{ createPost: { id: string } }>(app, create, { variables: { text }, token })).createPost.id

    const newComment = async (post: string, text: string, { token }: { token: string } = bob): Promise<string> =>
      (await read<{ addComment: { id: string } }>(app, comment, { variables: { post, text }, token })).addComment.id

    const change = (fields: string) => read(app, `mutation { ${fields} }`, ann)

    /** All events since the test began, and later ones. */
    const watch = (field: string, on = client) =>
      on.begin(`subscription { ${field} }`, undefined, { extensions: { after: position } })
    const told = ({ events }: Operation) => events.flatMap(event => Object.values(event as object))

    const posts = (selection = '{ id }') => client.begin(`subscription { postAdded ${selection} }`).listening(newPost)

    const comments = (post: string, text = commentsOf) =>
      client.begin(text, { post }).listening(marker => newComment(post, marker))

    it('R-SUB-1, R-SUB-4, R-SUB-5, R-SUB-6: postAdded sends exactly the selected fields of each new post', async () => {
      const subscription = await client
        .begin(`subscription New($n: Int = 3, $no: Boolean = false) {
          postAdded { ...Shown id likes publishedAt comments(limit: $n) { id } content @include(if: $no) }
        } fragment Shown on Post { headline: title author { id name posts(limit: $n) { title } } __typename }`)
        .listening(newPost)
      const id = await newPost('Zoë\'s "first" 🎈 \\ \n\u2028', bob)
      const { post } = await read<{ post: object }>(
        app,
        `{ post(id: ${id}) { headline: title author { id name posts(limit: 3) { title } } __typename id likes publishedAt comments { id } } }`,
      )
      const [event] = await subscription.received(1)
      assert.deepEqual(event, { postAdded: post })
      assert.equal(JSON.stringify(event), JSON.stringify({ postAdded: post })) // in the order of the selection
    })

    it('R-SUB-2, R-SUB-7, R-SUB-8: commentAdded sends the selected fields of each new comment on its post, including its author', async () => {
      const [post, other] = [await newPost('one'), await newPost('other')]
      const text = `subscription ($post: ID!) {
        said: commentAdded(postId: $post) { id text author { id name posts { title } } }
      }`
      const subscription = await comments(post, text)
      await newComment(other, 'Not here')
      const id = await newComment(post, 'Well said', ann)
      const others = await read<{ user: { posts: unknown } }>(app, `{ user(id: ${ann.id}) { posts { title } } }`)
      const author = { id: String(ann.id), name: ann.name, posts: others.user.posts }
      assert.deepEqual(await subscription.received(1), [{ said: { id, text: 'Well said', author } }])
    })

    it('R-SUB-9: nothing else is sent: no likes, deletions, users or comments of other posts', async () => {
      const post = await newPost('quiet')
      const other = await newPost('loud')
      const [onPosts, onComments] = [await posts(), await comments(post)]
      await read(app, `mutation { likePost(id: ${post}) { id } }`, ann)
      await newComment(other, 'elsewhere')
      await read(app, `mutation { deletePost(id: ${other}) }`, ann)
      await send(app, `PATCH /users/${bob.id}`, { age: 30 })
      await createMember(app)
      const lastComment = await newComment(post, 'last')
      const lastPost = await newPost('last')
      assert.deepEqual(await onPosts.received(1), [{ postAdded: { id: lastPost } }])
      assert.deepEqual(await onComments.received(1), [{ commentAdded: { id: lastComment } }])
    })

    it('a mutation of several fields sends the event of each, in their order; one that is rolled back sends none', async () => {
      const subscription = watch('postAdded { title }')
      const many = `mutation { ${repeat(5, n => `p${n}: createPost(title: "n${n}", content: "c") { id }`)} }`
      const failing = `mutation { a: createPost(title: "lost", content: "c") { id } b: likePost(id: 987654321) { id } }`
      await read(app, many, ann)
      assertRefused(await query(app, failing, ann), 404, 'NOT_FOUND')
      await newPost('last')
      await subscription.received(6)
      const titles = told(subscription).map(({ title }) => title)
      assert.deepEqual(titles, ['n0', 'n1', 'n2', 'n3', 'n4', 'last'])
    })

    it('that change posts and comments are told by the subscription of their kind, live and after a cut, with the selected fields', async () => {
      const [post, other] = [await newPost('T'), await newPost('T')]
      const [comment, doomed] = [await newComment(post, 'T', ann), await newComment(post, 'T')]
      const elsewhere = await newComment(other, 'T', ann)
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
      const [first, ...later] = updates
      assert.deepEqual({ ...first, updatedAt: '' }, { ...shown, updatedAt: '' })
      assert.deepEqual(later, [{ ...shown, updatedAt: now.updatedAt }])
      assert.deepEqual(rest, [[other], [{ id: comment, text: 'New', post: { id: post } }], [doomed]])
      assert.deepEqual(live[1]?.events, [{ gone: other }])
      for (const [at, { positions }] of live.entries()) assert.deepEqual(resumed[at]?.positions, positions)
      assert.deepEqual(resumed.slice(1).map(told), rest)
    })

    it('of the comments of a post end with the post, which is told once and its comments not, and of an absent post there are none', async () => {
      const post = await newPost('T')
      const comment = await newComment(post, 'T', ann)
      const ending = [
        watch(`commentUpdated(postId: ${post}) { id }`),
        watch(`commentDeleted(postId: ${post})`),
        watch(`commentAdded(postId: ${post}) { id }`),
      ]
      const [posts, updated] = [watch('postDeleted'), watch('postUpdated { id }')]
      await change(`updateComment(id: ${comment}, text: "New") { id }`)
      for (const each of [ending[0], ending[2]]) await each?.received(1)
      await change(`updatePost(id: ${post}, title: "New") { id } deletePost(id: ${post})`)
      for (const each of ending) await each.over()
      assert.deepEqual(ending.map(told), [[{ id: comment }], [], [{ id: comment }]])
      assert.ok(ending.every(({ errors }) => errors === undefined))
      const last = await newPost('T')
      await change(
        `updatePost(id: ${last}, title: "New") { id } b: deletePost(id: "${post}") deletePost(id: "${last}")`,
      )
      await posts.received(2)
      assert.deepEqual(told(posts), [post, last])
      // Both posts were deleted by the operation that had updated them.
      assert.deepEqual(told(updated), [])
      const absent = [post, '987654321', 'abc', '0', '01', '9007199254740993', '']
      for (const field of [
        ...absent.map(id => `commentAdded(postId: "${id}") { id }`),
        'commentUpdated(postId: 987654321) { id }',
        `commentDeleted(postId: ${post})`,
      ]) {
        const { errors } = await client.ask(`subscription { it: ${field} }`)
        assert.deepEqual(errors, [{ message: 'Post not found', path: ['it'], extensions: { code: 'NOT_FOUND' } }])
      }
    })

    it("tell of each post of a deleted user, and of each comment on others' posts", async () => {
      const author = await createMember(app)
      const [own, foreign] = [await newPost('T', author), await newPost('T')]
      const comments = [await newComment(foreign, 'T', author), await newComment(foreign, 'T', author)]
      const said = await newComment(own, 'T')
      const kept = await newComment(foreign, 'T')
      const [posts, deleted] = [watch('postDeleted'), watch(`commentDeleted(postId: ${foreign})`)]
      const ending = watch(`commentAdded(postId: ${own}) { id }`)
      await ending.received(1)
      await send(app, `DELETE /users/${author.id}`, undefined, author.token)
      await change(`deleteComment(id: ${kept}) deletePost(id: ${foreign})`)
      await ending.over()
      await deleted.over()
      await posts.received(2)
      const expected = [[{ id: said }], [...comments, kept], [own, foreign]]
      assert.deepEqual([ending, deleted, posts].map(told), expected)
    })
  })
}
