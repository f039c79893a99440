import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { execute } from '../faults/execute.ts'
import { startTestAppOn } from '../support/app.ts'
import { engineKinds } from '../support/engines.ts'
import { assertRefused, query, read, repeat, rowsOf } from '../support/graphql.ts'
import { createMember, type Member } from '../support/rest.ts'
import { shared } from '../support/shared.ts'

type Shown = { readonly id: string; readonly updatedAt: string; readonly began: string }

for (const kind of engineKinds) {
  describe(`The last update of content on ${kind.name}`, { skip: kind.skip }, () => {
    const app = shared(() => startTestAppOn(kind, { RATE_LIMIT_MAX: '0', LOGIN_LIMIT_MAX: '0' }))
    let ann: Member
    let bob: Member
    before(async () => {
      ;[ann, bob] = [await createMember(app), await createMember(app)]
    })
    const made = async (field: string) => (await read<{ made: Shown }>(app, `mutation { made: ${field} }`, ann)).made
    const newPost = () => made('createPost(title: "T", content: "C") { id updatedAt began: publishedAt }')
    const newComment = (post: string) =>
      made(`addComment(postId: ${post}, text: "T") { id updatedAt began: createdAt }`)

    /** The two kinds of content, each with what creates one, changes it and names it in errors. */
    const contents = {
      post: { create: newPost, change: (id: string, more = '') => `updatePost(id: ${id}, title: "New"${more})` },
      comment: {
        create: async () => newComment((await newPost()).id),
        change: (id: string, more = '') => `updateComment(id: ${id}, text: "New"${more})`,
      },
    }
    const state = async () => [
      await rowsOf(app.engine, 'select id, title, updated_at from posts order by id'),
      await rowsOf(app.engine, 'select id, text, updated_at from comments order by id'),
      await rowsOf(app.engine, 'select count(*) from outbox'),
    ]

    for (const [name, { create, change }] of Object.entries(contents)) {
      it(`is when a ${name} began, until it changes, and later with each change`, async () => {
        const { id, updatedAt, began } = await create()
        assert.equal(updatedAt, began)
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

      it(`may be required: a ${name} in another state is a conflict, and the whole operation changes nothing`, async () => {
        const { id, updatedAt } = await create()
        const required = (time: string) => change(id, `, ifUpdatedAt: "${time}"`)
        const stale = new Date(Date.parse(updatedAt) - 1).toISOString()
        const earlier = await state()
        const text = `mutation { made: createPost(title: "T", content: "C") { id } it: ${required(stale)} { id } }`
        const { message, path } = assertRefused(await query(app, text, ann), 409, 'CONFLICT')
        assert.deepEqual([message, path], [`The ${name} has changed`, ['it']])
        assert.deepEqual(await state(), earlier)
        // The same instant in another form. The second update of the operation finds what the first has made.
        const shifted = new Date(Date.parse(updatedAt) + 3_600_000).toISOString().replace('Z', '+01:00')
        const twice = `mutation { a: ${required(updatedAt)} { id } b: ${required(updatedAt)} { id } }`
        assert.deepEqual(assertRefused(await query(app, twice, ann), 409, 'CONFLICT').path, ['b'])
        const done = await read<{ a: Shown }>(app, `mutation { a: ${required(shifted)} { updatedAt } }`, ann)
        assertRefused(await query(app, `mutation { ${required(updatedAt)} { id } }`, ann), 409, 'CONFLICT')
        await read(
          app,
          `mutation { ${required(done.a.updatedAt)} { id } ${change(id, ', ifUpdatedAt: null').replace('u', 'b: u')} { id } }`,
          ann,
        )
      })

      it(`is checked only on a ${name} that exists and that the caller may change`, async () => {
        const { id } = await create()
        const stale = ', ifUpdatedAt: "2020-01-01T00:00Z"'
        assertRefused(await query(app, `mutation { ${change('987654321', stale)} { id } }`, ann), 404, 'NOT_FOUND')
        assertRefused(await query(app, `mutation { ${change(id, stale)} { id } }`, bob), 403, 'FORBIDDEN')
        assertRefused(await query(app, `mutation { ${change(id, stale)} { id } }`), 401, 'UNAUTHENTICATED')
        const malformed = `mutation { ${change(id, ', ifUpdatedAt: "yesterday"')} { id } }`
        assertRefused(await query(app, malformed, ann), 400, 'GRAPHQL_VALIDATION_FAILED')
      })

      it(`lets exactly one of ten updates of a ${name} through that know the same state`, async () => {
        const { id, updatedAt } = await create()
        const text = `mutation { ${change(id, `, ifUpdatedAt: "${updatedAt}"`)} { id } }`
        const answers = await Promise.all(Array.from({ length: 10 }, () => query(app, text, ann)))
        assert.deepEqual(answers.map(({ status }) => status).toSorted(), [200, ...Array(9).fill(409)])
      })
    }

    it('stays as it is with likes and comments', async () => {
      const { id, updatedAt } = await newPost()
      await read(app, `mutation { likePost(id: ${id}) { id } }`, ann)
      await newComment(id)
      assert.deepEqual(await read(app, `{ post(id: ${id}) { updatedAt } }`), { post: { updatedAt } })
    })

    it('exists for a post without a publication, too, and for what other programs have dated in the future', async () => {
      const [post, comment] = await Promise.all(Object.values(contents).map(({ create }) => create()))
      const end = '9999-12-31T23:59:59.999Z'
      await execute(
        app.database,
        `update posts set published_at = null where id = ${post?.id};
                                   update comments set created_at = '${end}' where id = ${comment?.id}`,
      )
      const shown = await read(app, `{ post(id: ${post?.id}) { updatedAt publishedAt } }`)
      const epoch = '1970-01-01T00:00:00.000Z'
      assert.deepEqual(shown, { post: { updatedAt: epoch, publishedAt: null } })
      const text = `mutation { ${contents.post.change(post?.id ?? '', `, ifUpdatedAt: "${epoch}"`)} { publishedAt }
                               ${contents.comment.change(comment?.id ?? '')} { updatedAt } }`
      assert.deepEqual(await read(app, text, ann), {
        updatePost: { publishedAt: null },
        updateComment: { updatedAt: end },
      })
    })
  })
}
