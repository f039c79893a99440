import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { gql } from '@apollo/client'
import { graphql } from '../../client/src/index.ts'
import { startTestApp } from '../support/app.ts'
import { createMember } from '../support/rest.ts'
import { connectTo } from './support.ts'

describe('GraphQL operations of the client', () => {
  it("read and change data, with variables and the session's token, from a text or a document object", async () => {
    await using app = await startTestApp({ RATE_LIMIT_MAX: '0' })
    const { email, name } = await createMember(app)
    using client = connectTo(app)
    const { mutate, query } = graphql(client.duet)
    await client.duet.signIn({ email, password: 'right password' })
    const create = 'mutation ($title: String!) { createPost(title: $title, content: "x") { author { name } } }'
    assert.deepEqual(await mutate(create, { title: 'A' }), { createPost: { author: { name } } })
    const text = 'query ($n: Int) { posts(limit: $n) { title } }'
    const documents = [text, new String(text), { toString: () => text }, gql(text)]
    for (const document of documents) {
      assert.deepEqual(await query(document, { n: 1 }), { posts: [{ title: 'A' }] })
    }
    assert.deepEqual(await query('{ posts { title } }'), { posts: [{ title: 'A' }] })
    await assert.rejects(query({ kind: 'Document', definitions: [] } as object), /documentMode: 'string'/)
    const body = JSON.parse(client.requests.at(-1)?.body ?? '')
    assert.deepEqual(body, { query: '{ posts { title } }' })
    const stale = 'mutation { updatePost(id: 1, title: "B", ifUpdatedAt: "2020-01-01T00:00Z") { id } }'
    await assert.rejects(mutate(stale), { kind: 'conflict', code: 'CONFLICT', message: 'The post has changed' })
  })
})
