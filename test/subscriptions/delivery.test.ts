import assert from 'node:assert/strict'
import { afterEach, before, beforeEach, describe, it } from 'node:test'
import { startTestAppOn } from '../support/app.ts'
import { engineKinds } from '../support/engines.ts'
import { inForm } from '../support/form.ts'
import { assertRefused, query, read, repeat, rowsOf } from '../support/graphql.ts'
import { createMember, send, type UserBody } from '../support/rest.ts'
import { shared } from '../support/shared.ts'
import { type Operation, SocketClient } from '../support/sockets.ts'

type Member = UserBody & { readonly token: string }

const postsInAll = inForm(100, 2_000)

const create = 'mutation ($text: String!) { createPost(title: $text, content: $text) { id } }'
const comment = 'mutation ($post: ID!, $text: String!) { addComment(postId: $post, text: $text) { id } }'
const commentsOf = 'subscription ($post: ID!) { commentAdded(postId: $post) { id } }'

for (const kind of engineKinds) {
  describe(`Events on ${kind.name}`, { skip: kind.skip }, () => {
    const app = shared(() => startTestAppOn(kind, { RATE_LIMIT_MAX: '0', LOGIN_LIMIT_MAX: '0' }))
    let ann: Member
    let bob: Member
    let client: SocketClient
    before(async () => {
      ann = await createMember(app)
      bob = await createMember(app)
    })

    beforeEach(async () => {
      client = await SocketClient.connect(app)
    })
    afterEach(() => client[Symbol.dispose]())

    const newPost = async (text: string, { token }: { token: string } = ann): Promise<string> =>
      (await read<{ createPost: { id: string } }>(app, create, { variables: { text }, token })).createPost.id

    const newComment = async (post: string, text: string, { token }: { token: string } = bob): Promise<string> =>
      (await read<{ addComment: { id: string } }>(app, comment, { variables: { post, text }, token })).addComment.id

    const posts = (selection = '{ id }') => client.begin(`subscription { postAdded ${selection} }`).listening(newPost)

    const comments = (post: string, text = commentsOf) =>
      client.begin(text, { post }).listening(marker => newComment(post, marker))

    /** The ids of the posts in the stored order of their events. */
    const storedOrder = async (): Promise<readonly string[]> => {
      const order = kind.kind === 'sqlite' ? 'id' : 'position'
      const rows = await rowsOf(app.engine, `select post_id from outbox where kind = 'post-added' order by ${order}`)
      return rows.map(([id]) => String(id))
    }

    it('R-SUB-1, R-SUB-4, R-SUB-5, R-SUB-6: postAdded sends exactly the selected fields of each new post', async () => {
      const subscription = await client
        .begin(`subscription New($n: Int = 3, $no: Boolean = false) {
          postAdded { ...Shown id likes publishedAt comments(limit: $n) { id } content @include(if: $no) }
        } fragment Shown on Post { headline: title author { id name posts(limit: $n) { title } } __typename }`)
        .listening(newPost)
      const text = 'Zoë\'s "first" 🎈 \\ \n\u2028'
      const id = await newPost(text, bob)
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
      const subscription = await posts('{ title }')
      const many = `mutation { ${repeat(5, n => `p${n}: createPost(title: "n${n}", content: "c") { id }`)} }`
      const failing = `mutation { a: createPost(title: "lost", content: "c") { id } b: likePost(id: 987654321) { id } }`
      await read(app, many, ann)
      assertRefused(await query(app, failing, ann), 404, 'NOT_FOUND')
      await newPost('last')
      const events = await subscription.received(6)
      assert.deepEqual(
        events.map(event => (event as { postAdded: { title: string } }).postAdded.title),
        ['n0', 'n1', 'n2', 'n3', 'n4', 'last'],
      )
    })

    it('complete from the client ends the subscription and frees its id', async () => {
      const subscription = await posts()
      const other = await posts('{ id title }')
      subscription.complete()
      await client.read('{ __typename }') // answered after `complete` was received
      const before = subscription.events.length
      const id = await newPost('after')
      assert.deepEqual(await other.received(1), [{ postAdded: { id, title: 'after' } }])
      const again = client.begin('subscription { postAdded { id likes } }', undefined, { id: subscription.id })
      await again.listening(newPost)
      assert.equal(subscription.events.length, before)
      assert.ok(!subscription.isOver, 'a client that completes gets no complete message')
    })

    it('commentAdded of an absent post gets an error with NOT_FOUND and its path', async () => {
      const post = await newPost('to be deleted')
      await read(app, `mutation { deletePost(id: ${post}) }`, ann)
      for (const id of [post, '987654321', 'abc', '0', '01', '9007199254740993', '']) {
        const { data, errors } = await client.ask(`subscription { said: commentAdded(postId: "${id}") { id } }`)
        assert.equal(data, undefined)
        assert.deepEqual(errors, [{ message: 'Post not found', path: ['said'], extensions: { code: 'NOT_FOUND' } }], id)
      }
    })

    it('commentAdded completes when its post is deleted, after all of its comments', async () => {
      const [post, other] = [await newPost('short-lived'), await newPost('lasting')]
      const [ending, lasting] = [await comments(post), await comments(other)]
      const id = await newComment(post, 'the last')
      await ending.received(1)
      await read(app, `mutation { deletePost(id: ${post}) }`, ann)
      await ending.over()
      assert.deepEqual([ending.events, ending.errors], [[{ commentAdded: { id } }], undefined])
      const last = await newComment(other, 'still here')
      assert.deepEqual(await lasting.received(1), [{ commentAdded: { id: last } }])
    })

    it('commentAdded completes when the author of its post is deleted', async () => {
      const author = await createMember(app)
      const post = await newPost('by one who leaves', author)
      const subscription = await comments(post)
      await send(app, `DELETE /users/${author.id}`, undefined, author.token)
      await subscription.over()
      assert.deepEqual([subscription.events, subscription.errors], [[], undefined])
    })

    it('a comment that is deleted with its author before it is sent does not affect other events', async () => {
      const author = await createMember(app)
      const post = await newPost('commented')
      const subscription = await comments(post)
      await newComment(post, 'short-lived', author)
      await send(app, `DELETE /users/${author.id}`, undefined, author.token)
      const id = await newComment(post, 'lasting')
      await subscription.until(events => JSON.stringify(events.at(-1)) === JSON.stringify({ commentAdded: { id } }))
      assert.ok(subscription.events.length <= 2 && !subscription.isOver)
    })

    it(`${postsInAll} posts by 20 writers: each subscriber gets each post once, all in the same order`, async () => {
      const selections = [
        ...['{ id }', '{ id title }', '{ id author { name } }', '{ key: id content }'],
        ...['{ id comments { id } }'],
      ]
      const clients = await Promise.all(selections.map(() => SocketClient.connect(app)))
      const subscriptions = await Promise.all(
        clients.map((each, n) => each.begin(`subscription { postAdded ${selections[n]} }`).listening(newPost)),
      )
      // The first subscriptions also received the posts with which the last ones were started.
      const mark = await newPost('from here on')
      const idsOf = ({ events }: Operation) =>
        events.map(event => {
          const { id, key = id } = (event as { postAdded: { id?: string; key?: string } }).postAdded
          return String(key)
        })
      for (const each of subscriptions) await each.until(() => idsOf(each).includes(mark))
      for (const each of subscriptions) each.events.length = 0

      const writers = Array.from({ length: 20 }, async (_, writer) => {
        using socket = await SocketClient.connect(app, writer % 2 === 0 ? ann : bob)
        const ids: string[] = []
        for (let n = 0; n < postsInAll / 20; n++) {
          const { createPost } = await socket.read<{ createPost: { id: string } }>(create, { text: `${writer} ${n}` })
          ids.push(createPost.id)
        }
        return ids
      })
      const written = await Promise.all(writers)
      for (const each of subscriptions) await each.received(postsInAll)
      const expected = (await storedOrder()).slice(-postsInAll)
      assert.deepEqual(new Set(expected), new Set(written.flat()))
      for (const each of subscriptions) assert.deepEqual(idsOf(each), expected)
      for (const ids of written)
        assert.deepEqual(
          expected.filter(id => ids.includes(id)),
          ids,
        )
      for (const each of clients) await each.close()
    })

    it('ids are returned unchanged, with any characters', async () => {
      const ids = [
        ...['"', '\\', '\\"', '","type":"error","x":"', '\u0000\u001f\n', '\u2028', 'é€🎈', '\ud800'],
        ...['</script>', '{}', ' '],
      ]
      ids.push('x'.repeat(256), '€'.repeat(256))
      const all: Operation[] = []
      for (const id of ids)
        all.push(await client.begin('subscription { postAdded { id } }', undefined, { id }).listening(newPost))
      client.messages.length = 0
      const post = await newPost('for all')
      for (const each of all)
        await each.until(events => JSON.stringify(events.at(-1)) === `{"postAdded":{"id":"${post}"}}`)
      const received = client.messages.filter(
        ({ payload }) => JSON.stringify(payload) === `{"data":{"postAdded":{"id":"${post}"}}}`,
      )
      assert.deepEqual(new Set(received.map(({ id }) => id)), new Set(ids))
      assert.equal(received.length, ids.length)
      for (const id of ids) {
        const failing = client.begin('{ nothing }', undefined, { id: `${id.slice(0, 250)}q` })
        await failing.over()
        assert.ok(failing.errors, id)
      }
    })
  })
}
