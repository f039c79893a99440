import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Refusal } from '../../src/graphql/errors.ts'
import { planBounds } from '../../src/graphql/language/plans.ts'
import { bounds } from '../../src/storage/bounds.ts'
import { sql } from '../../src/storage/sql.ts'
import { instants } from '../graphql/support/data.ts'
import { actorOf, Stage, serviceOver } from '../graphql/support/stage.ts'
import { engineKinds } from '../support/engines.ts'
import { repeat } from '../support/graphql.ts'
import { shared } from '../support/shared.ts'

const [noon = ''] = instants
const ann = { id: 1, name: 'Ann', email: 'ann@example.com', avatar: null, createdAt: noon }

const contents = (count: number) => repeat(count, at => `k${at}: content`)
const lists = (count: number) => repeat(count, at => `x${at}: posts(limit: 1) { content }`)

for (const kind of engineKinds) {
  describe(`A selection on ${kind.name}`, { skip: kind.skip }, () => {
    const stage = shared(() => Stage.open(kind))
    const ask = (text: string) => serviceOver(stage.engine, 1e9)(text, {}, actorOf(1))
    const assertRefused = (text: string, code: string) =>
      assert.rejects(ask(text), error => error instanceof Refusal && error.code === code, text.slice(0, 100))
    const likes = () => stage.engine.read(sql`select likes from posts where id = 1`)

    /** Leaves this many posts, all of Ann and with this content, with ids from 1 on. */
    async function plant(count: number, content: string): Promise<void> {
      await stage.insert({ users: [ann], posts: [], comments: [] })
      const own = kind.kind === 'postgres' ? 'overriding system value' : ''
      const text = `with recursive numbers (number) as (select 1 union all select number + 1 from numbers where number < ${count})
                    insert into posts (id, author_id, title, content) ${own}
                    select number, 1, 'Title', cast($1 as text) from numbers`
      await stage.engine.write('run', [{ text, values: [content] }])
    }

    it('of long texts, objects and lists is answered up to the number that a document can have, also in a mutation', async () => {
      await plant(1, 'Words')
      const author = (at: number) => `a${at}: author { ...F }`
      const shapes: Readonly<Record<string, readonly [words: number, field: string, fragment?: string]>> = {
        'one text': [1, 'post(id: 1) { content }'],
        'texts with short keys': [320, `post(id: 1) { ${contents(320)} }`],
        'texts with long keys': [320, `post(id: 1) { ${repeat(320, at => `${'k'.repeat(120)}${at}: content`)} }`],
        'lists of one object': [80, `user(id: 1) { ${lists(80)} }`],
        'objects at the top': [80, repeat(80, at => `p${at}: post(id: 1) { content }`)],
        'objects of an object': [100, `post(id: 1) { ${repeat(100, author)} }`, `fragment F on User { ${lists(1)} }`],
      }
      for (const [what, [words, field, fragment = '']] of Object.entries(shapes)) {
        const answers = [await ask(`{ ${field} } ${fragment}`)]
        if (field.startsWith('post'))
          answers.push(await ask(`mutation { ${field.replace('post', 'likePost')} } ${fragment}`))
        for (const answer of answers) assert.equal(answer.match(/"Words"/g)?.length, words, what)
      }
    })

    it('of more lists than allowed is refused in a query and in a mutation, and then nothing is changed', async () => {
      await plant(1, 'Words')
      const fragment = `fragment F on User { ${lists(planBounds.lists / 4)} }`
      const query = (more: string) => `{ ${repeat(4, at => `u${at}: user(id: 1) { ...F }`)} ${more} } ${fragment}`
      const mutation = `mutation { ${repeat(4, at => `m${at}: likePost(id: 1) { author { ...F } }`)}
        more: likePost(id: 1) { author { ${lists(1)} } } } ${fragment}`
      assert.equal((await ask(query(''))).match(/"Words"/g)?.length, planBounds.lists)
      for (const text of [query(lists(1)), mutation]) await assertRefused(text, 'DOCUMENT_TOO_LARGE')
      assert.deepEqual(await likes(), [[0]])
    })

    it('may have an answer of exactly two MiB, counted in bytes', async () => {
      const full = 'é'.repeat(32_768)
      await plant(2, full)
      const keys = Object.fromEntries(Array.from({ length: 31 }, (_, at) => [`k${at}`, full]))
      const known = Buffer.byteLength(JSON.stringify({ full: keys, rest: { content: '' } }))
      const read = async (bytes: number) => {
        await stage.engine.write('run', [sql`update posts set content = ${'y'.repeat(bytes - known)} where id = 2`])
        return await ask(`{ full: post(id: 1) { ${contents(31)} } rest: post(id: 2) { content } }`)
      }
      assert.equal(Buffer.byteLength(await read(bounds.answerBytes)), bounds.answerBytes)
      await assert.rejects(read(bounds.answerBytes + 1), { code: 'RESPONSE_TOO_LARGE' })
    })

    it('is refused before it is built in the memory of the server or of the database', async t => {
      await plant(1000, 'x'.repeat(65_536))
      await assertRefused('{ posts(limit: 140) { content } }', 'RESPONSE_TOO_LARGE')
      const before = process.resourceUsage().maxRSS
      for (const text of [
        '{ posts(limit: 1000) { content } }',
        '{ users(limit: 1) { posts(limit: 900) { content } } }',
        `{ post(id: 1) { ${contents(50)} } }`,
      ])
        await assertRefused(text, 'RESPONSE_TOO_LARGE')
      const grown = (process.resourceUsage().maxRSS - before) * 1024
      t.diagnostic(`${Math.round(grown / 1024 / 1024)} MiB more at the most`)
      // The texts alone would take 60 MB. Other work of this process may take some memory too.
      assert.ok(grown < 30_000_000, `${grown} bytes more`)
    })

    it('of a mutation has at most two MiB for all fields together, and above that nothing is changed', async () => {
      await plant(30, 'é'.repeat(15_000))
      const like = (at: number) => `m${at}: likePost(id: 1) { author { posts(limit: 30) { content } } }`
      await ask(`mutation { ${repeat(2, like)} }`)
      await assertRefused(`mutation { ${repeat(3, like)} }`, 'RESPONSE_TOO_LARGE')
      assert.deepEqual(await likes(), [[2]])
    })
  })
}
