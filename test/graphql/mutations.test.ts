import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { execute } from '../faults/execute.ts'
import { startTestAppOn } from '../support/app.ts'
import { engineKinds } from '../support/engines.ts'
import { assertRefused, query, read, repeat, rowsOf } from '../support/graphql.ts'
import { atOnce, createMember, type Member } from '../support/rest.ts'
import { shared } from '../support/shared.ts'

type Shown = { readonly id: string; readonly updatedAt: string; readonly began: string }

for (const kind of engineKinds) {
  describe(`Mutations on ${kind.name}`, { skip: kind.skip }, () => {
    const app = shared(() => startTestAppOn(kind, { RATE_LIMIT_MAX: '0', LOGIN_LIMIT_MAX: '0' }))
    let ann: Member
    let bob: Member
    before(async () => {
      ;[ann, bob] = [await createMember(app), await createMember(app)]
    })

    const made = async (field: string) => (await read<{ made: Shown }>(app, `mutation { made: ${field} }`, ann)).made
    /** A post of Ann. */
    const newPost = () => made('createPost(title: "T", content: "C") { id updatedAt began: publishedAt }')
    /** A comment of Ann on a new post. */
    const newComment = async () =>
      made(`addComment(postId: ${(await newPost()).id}, text: "T") { id updatedAt began: createdAt }`)

    /** All rows that a mutation may change, and all events. The texts may be long. */
    const state = async () => [
      await rowsOf(
        app.engine,
        'select id, title, octet_length(content), likes, comment_count, updated_at from posts order by id',
      ),
      await rowsOf(app.engine, 'select id, post_id, octet_length(text), updated_at from comments order by id'),
      await rowsOf(app.engine, 'select kind, post_id, comment_id, user_id from outbox order by id'),
    ]
    /** Checks that a mutation is refused with this error and has changed nothing. */
    const refused = async (
      fields: string,
      member: Member | undefined,
      status: number,
      code: string,
      variables?: object,
    ) => {
      const declared = Object.keys(variables ?? {}).map(name => `$${name}: String!`)
      const text = `mutation${declared.length > 0 ? `(${declared})` : ''} { ${fields} }`
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
      const { made } = await read<{ made: Record<string, unknown> }>(app, text, { variables: values, token: bob.token })
      const { id, publishedAt, ...shown } = made
      const author = { id: String(bob.id), name: bob.name }
      assert.deepEqual(shown, { ...values, likes: 0, author, comments: [] })
      const { post } = await read(app, `{ post(id: ${id}) { title content author { id name } publishedAt } }`)
      assert.deepEqual(post, { ...values, author, publishedAt })
    })

    it('R-GQL-29: of 50 concurrent likes none is lost, and each answer has a different number, until there are as many as an Int may have', async () => {
      const { id } = await newPost()
      const like = `mutation { likePost(id: ${id}) { likes } }`
      const answers = await atOnce(50, () => read<{ likePost: { likes: number } }>(app, like))
      const numbers = new Set(answers.map(({ likePost }) => likePost.likes))
      assert.deepEqual(numbers, new Set(Array.from({ length: 50 }, (_, index) => index + 1)))
      assert.deepEqual(await read(app, `{ post(id: ${id}) { likes } }`), { post: { likes: 50 } })
      await execute(app.database, `update posts set likes = 2147483646 where id = ${id}`)
      for (let times = 0; times < 2; times++)
        assert.deepEqual(await read(app, like), { likePost: { likes: 2_147_483_647 } })
    })

    it('R-GQL-28: what does not exist is not found, and its deletion returns false', async () => {
      for (const id of ['123456789', 'abc', '0', '01', '-1', '1e0', '9007199254740993', '', "1' or '1'='1"]) {
        const like = `it: likePost(id: "${id}") { id }`
        const { message, path } = await refused(like, undefined, 404, 'NOT_FOUND')
        assert.deepEqual([message, path], ['Post not found', ['it']])
        await refused(`addComment(postId: "${id}", text: "Hi") { id }`, ann, 404, 'NOT_FOUND')
        await refused(`updatePost(id: "${id}", title: "T") { id }`, ann, 404, 'NOT_FOUND')
        const update = `updateComment(id: "${id}", text: "T") { id }`
        assert.equal((await refused(update, bob, 404, 'NOT_FOUND')).message, 'Comment not found')
        const deletions = `mutation { a: deletePost(id: "${id}") b: deleteComment(id: "${id}") }`
        assert.deepEqual(await read(app, deletions, bob), { a: false, b: false })
      }
    })

    it('a comment is deleted by the author of its post, too, but changed only by its own', async () => {
      const { id } = await newPost()
      const add = `mutation { it: addComment(postId: ${id}, text: "T") { id } }`
      const { it } = await read<{ it: Shown }>(app, add, bob)
      await refused(`updateComment(id: ${it.id}, text: "New") { id }`, ann, 403, 'FORBIDDEN')
      assert.deepEqual(await read(app, `mutation { deleteComment(id: ${it.id}) }`, ann), { deleteComment: true })
    })

    it('updatePost changes what is given, and keeps the rest, also where null is given', async () => {
      const { id } = await newPost()
      const text = `mutation ($title: String, $content: String) {
        updatePost(id: ${id}, title: $title, content: $content) { title content }
      }`
      for (const [variables, updatePost] of [
        [{ title: 'New "title"' }, { title: 'New "title"', content: 'C' }],
        [{ content: 'New\n\u2028' }, { title: 'New "title"', content: 'New\n\u2028' }],
        [
          { title: null, content: 'D' },
          { title: 'New "title"', content: 'D' },
        ],
        [
          { title: 'U', content: null },
          { title: 'U', content: 'D' },
        ],
      ])
        assert.deepEqual(await read(app, text, { variables, token: ann.token }), { updatePost })
    })

    it('likes and comments leave the last update of a post as it is', async () => {
      const { id, updatedAt } = await newPost()
      await read(app, `mutation { likePost(id: ${id}) { id } addComment(postId: ${id}, text: "T") { id } }`, ann)
      assert.deepEqual(await read(app, `{ post(id: ${id}) { updatedAt } }`), { post: { updatedAt } })
    })

    it('updatePost of nothing is refused with 400, before an absent post is noticed', async () => {
      const { id } = await newPost()
      for (const args of [`id: ${id}`, `id: ${id}, title: null`, 'id: 123456789, title: null, content: null']) {
        const { path } = await refused(`updatePost(${args}) { id }`, ann, 400, 'BAD_USER_INPUT')
        assert.deepEqual(path, ['updatePost'])
      }
    })

    /** Each change that stores a text: its name in errors, the change with the text as `$v`, and its greatest length. */
    const changesOf = (post: string, comment: string): readonly (readonly [string, string, number])[] => [
      ['title', 'createPost(title: $v, content: "C") { id }', 300],
      ['content', 'createPost(title: "T", content: $v) { id }', 65_536],
      ['text', `addComment(postId: ${post}, text: $v) { id }`, 65_536],
      ['title', `updatePost(id: ${post}, title: $v) { id }`, 300],
      ['content', `updatePost(id: ${post}, content: $v) { id }`, 65_536],
      ['text', `updateComment(id: ${comment}, text: $v) { id }`, 65_536],
    ]
    const longChanges = (post: string, comment: string) =>
      changesOf(post, comment).flatMap(([, change, most]) => (most > 1000 ? [change] : []))
    const store = (change: string, v: string) =>
      read(app, `mutation ($v: String!) { ${change} }`, { variables: { v }, token: ann.token })

    it('blank, too long or malformed texts are refused with 400, and the longest allowed text is accepted', async () => {
      for (const [name, change, most] of changesOf((await newPost()).id, (await newComment()).id)) {
        const wrong = ['', '\t\n\u00a0\u2003', 'a\u0000b', 'a\ud800b', '\udc00', 'x\ud83d', 'x'.repeat(most + 1)]
        for (const v of wrong) {
          const { message } = await refused(change, ann, 400, 'BAD_USER_INPUT', { v })
          assert.ok(message.startsWith(name), message)
        }
        for (const v of ['x'.repeat(most), 'é'.repeat(most), '🎈'.repeat(most / 2)]) await store(change, v)
      }
      await refused('createPost(title: "a\\uD800", content: "C") { id }', ann, 400, 'GRAPHQL_PARSE_FAILED')
    })

    it('a long text of control characters is refused with 400, and a short one is accepted', async () => {
      const mixed = (length: number, controls: number) => '\u001f'.repeat(controls).padEnd(length, 'x')
      for (const change of longChanges((await newPost()).id, (await newComment()).id)) {
        for (const v of [mixed(1_001, 102), '\u0001'.repeat(65_536)])
          await refused(change, ann, 400, 'BAD_USER_INPUT', { v })
        for (const v of ['\u0001'.repeat(1_000), mixed(1_001, 100), '\n\t\r\b\f"\\'.repeat(9_000)])
          await store(change, v)
      }
    })

    it('an operation with more than 1 MiB of text, counting each use of a variable, stores nothing', async () => {
      const { id } = await newPost()
      const changes = longChanges(id, (await newComment()).id)
      const fields = (count: number) =>
        `${repeat(count, n => `a${n}: ${changes[n % changes.length]}`)} last: addComment(postId: ${id}, text: $last) { id }`
      for (const [v, count] of [
        ['x'.repeat(65_536), 15],
        ['é'.repeat(65_000), 8],
        ['€'.repeat(42_000), 8],
      ] as const) {
        const titles = Math.ceil(count / changes.length) // of one byte each, one for each post
        const left = 1024 * 1024 - count * Buffer.byteLength(v) - titles
        const tooMuch = { v, last: 'x'.repeat(left + 1) }
        const { message, path } = await refused(fields(count), ann, 400, 'BAD_USER_INPUT', tooMuch)
        assert.deepEqual([message, path], ['An operation stores at most 1048576 bytes of text', undefined])
        const text = `mutation ($v: String!, $last: String!) { ${fields(count)} }`
        await read(app, text, { variables: { v, last: 'x'.repeat(left) }, token: ann.token })
      }
      const far = { v: 'x'.repeat(65_536), last: 'x' }
      await refused(fields(60), ann, 400, 'BAD_USER_INPUT', far)
      await refused(fields(60), undefined, 401, 'UNAUTHENTICATED', far)
    })

    it('the error about a text contains its name and path, and comes before the error about an absent post', async () => {
      for (const [title, expected] of [
        [' ', 'title must not be empty'],
        ['x'.repeat(301), 'title must be at most 300 characters long'],
      ] as const) {
        const fields = `other: likePost(id: 123456789) { id } mine: createPost(title: "${title}", content: "C") { id }`
        const { message, path } = await refused(fields, ann, 400, 'BAD_USER_INPUT')
        assert.deepEqual([message, path], [expected, ['mine']])
      }
    })

    /** The two kinds of content, each with what creates one, changes it and names it in errors. */
    const contents = {
      post: { create: newPost, change: (id: string, more = '') => `updatePost(id: ${id}, title: "New"${more})` },
      comment: {
        create: newComment,
        change: (id: string, more = '') => `updateComment(id: ${id}, text: "New"${more})`,
      },
    }

    for (const [name, { create, change }] of Object.entries(contents)) {
      it(`the last update of a ${name} is when it began, until it changes, and later with each change`, async () => {
        const earliest = Date.now()
        const { id, updatedAt, began } = await create()
        assert.equal(updatedAt, began)
        assert.ok(Date.parse(began) >= earliest - 1 && Date.parse(began) <= Date.now(), began)
        // The updates of one operation happen at the same time.
        const many = `mutation { ${repeat(5, n => `a${n}: ${change(id)} { updatedAt }`)} }`
        const answers = [
          await read<Record<string, Shown>>(app, many, ann),
          await read<Record<string, Shown>>(app, many, ann),
        ]
        const times = [updatedAt, ...answers.flatMap(answer => Object.values(answer).map(each => each.updatedAt))]
        assert.deepEqual(times, [...new Set(times)].toSorted())
        for (const time of times) assert.match(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
      })

      it(`the last update of a ${name} may be required: another state is a conflict, and the whole operation changes nothing`, async () => {
        const { id, updatedAt } = await create()
        const required = (time: string) => change(id, `, ifUpdatedAt: "${time}"`)
        const stale = new Date(Date.parse(updatedAt) - 1).toISOString()
        const fields = `made: createPost(title: "T", content: "C") { id } it: ${required(stale)} { id }`
        const { message, path } = await refused(fields, ann, 409, 'CONFLICT')
        assert.deepEqual([message, path], [`The ${name} has changed`, ['it']])
        // The same instant in another form. The second update of the operation finds what the first has made.
        const shifted = new Date(Date.parse(updatedAt) + 3_600_000).toISOString().replace('Z', '+01:00')
        const twice = `a: ${required(updatedAt)} { id } b: ${required(updatedAt)} { id }`
        assert.deepEqual((await refused(twice, ann, 409, 'CONFLICT')).path, ['b'])
        const done = await read<{ a: Shown }>(app, `mutation { a: ${required(shifted)} { updatedAt } }`, ann)
        await refused(`${required(updatedAt)} { id }`, ann, 409, 'CONFLICT')
        const again = `a: ${required(done.a.updatedAt)} { id } b: ${change(id, ', ifUpdatedAt: null')} { id }`
        await read(app, `mutation { ${again} }`, ann)
      })

      it(`the last update is checked only on a ${name} that exists and that the caller may change`, async () => {
        const { id } = await create()
        const stale = ', ifUpdatedAt: "2020-01-01T00:00Z"'
        await refused(`${change('987654321', stale)} { id }`, ann, 404, 'NOT_FOUND')
        await refused(`${change(id, stale)} { id }`, bob, 403, 'FORBIDDEN')
        await refused(`${change(id, stale)} { id }`, undefined, 401, 'UNAUTHENTICATED')
      })

      it(`exactly one of ten updates of a ${name} that know the same state takes place`, async () => {
        const { id, updatedAt } = await create()
        const text = `mutation { ${change(id, `, ifUpdatedAt: "${updatedAt}"`)} { id } }`
        const answers = await atOnce(10, () => query(app, text, ann))
        assert.deepEqual(answers.map(({ status }) => status).toSorted(), [200, ...Array(9).fill(409)])
      })
    }

    it('the last update is known of a post without a publication, and of what other programs have dated in the future', async () => {
      const [post, comment] = [await newPost(), await newComment()]
      const end = '9999-12-31T23:59:59.999Z'
      const dates = `update posts set published_at = null where id = ${post.id};
                     update comments set created_at = '${end}' where id = ${comment.id}`
      await execute(app.database, dates)
      const shown = await read(app, `{ post(id: ${post.id}) { updatedAt publishedAt } }`)
      const epoch = '1970-01-01T00:00:00.000Z'
      assert.deepEqual(shown, { post: { updatedAt: epoch, publishedAt: null } })
      const text = `mutation { ${contents.post.change(post.id, `, ifUpdatedAt: "${epoch}"`)} { publishedAt }
                               ${contents.comment.change(comment.id)} { updatedAt } }`
      const expected = { updatePost: { publishedAt: null }, updateComment: { updatedAt: end } }
      assert.deepEqual(await read(app, text, ann), expected)
    })
  })
}
