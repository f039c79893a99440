import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { describe, it } from 'node:test'
import { startTestAppOn } from '../support/app.ts'
import { engineKinds } from '../support/engines.ts'
import { onlyOneThread } from '../support/form.ts'
import { dataOf, query, repeat } from '../support/graphql.ts'
import { createMember } from '../support/rest.ts'

const many = 12

for (const kind of engineKinds) {
  describe(`A client that sends many heavy queries at once on ${kind.name}`, { skip: kind.skip }, () => {
    const cases = {
      'does not delay the quick queries of others': { theirs: '{ user(id: 1) { name } }', skip: false },
      // Clients take turns within a thread. Another thread may be ahead with its part of the queries.
      'does not delay the heavy queries of others': { theirs: heavy(many), skip: onlyOneThread },
    }
    for (const [title, { theirs, skip }] of Object.entries(cases)) {
      it(title, { skip }, async () => {
        await using app = await startTestAppOn(kind, { RATE_LIMIT_MAX: '0', DATABASE_POOL_MAX: '4' })
        const ann = await createMember(app)
        const content = '"'.repeat(65_000) // twice as long in JSON
        const create = 'mutation ($content: String!) { createPost(title: "Long", content: $content) { id } }'
        dataOf(await query(app, create, { ...ann, variables: { content } }))
        let answered = 0
        const busy = Array.from({ length: many }, async (_, n) => {
          await send(app.port, '127.0.0.1', heavy(n))
          answered++
        })
        await send(app.port, '127.0.0.2', theirs)
        // Some are answered while the server still reads this one. Without turns at most two would be answered after it.
        assert.ok(answered < many - 2, `${answered} were answered before`)
        await Promise.all(busy)
      })
    }
  })
}

/**
 * It is refused in the end, because its answer is too large: so the client has nothing to read, which would take time
 * from the server here. Its text is new for each number, so that nothing can be known about it.
 */
function heavy(n: number): string {
  return `{ post(id: 1) { ${repeat(120, at => `c${n}_${at}: content`)} } }`
}

async function send(port: number, localAddress: string, query: string): Promise<void> {
  const headers = { 'content-type': 'application/json' }
  const asked = request({ host: '127.0.0.1', port, localAddress, path: '/graphql', method: 'POST', headers })
  asked.end(JSON.stringify({ query }))
  const [answer] = (await once(asked, 'response')) as [IncomingMessage]
  await text(answer)
}
