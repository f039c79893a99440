import assert from 'node:assert/strict'
import { test } from 'node:test'
import { serverAudits } from 'graphql-http'
import { startTestApp } from '../support/app.ts'
import { within } from '../support/wait.ts'

/**
 * The service never answers 200 with an error. For these cases the audits expect 200 with application/json, so they
 * warn.
 */
const accepted: Readonly<Record<string, string>> = {
  '572B': 'SHOULD use 200 status code on document parsing failure when accepting application/json',
  FDE2: 'SHOULD use 200 status code on document validation failure when accepting application/json',
  '7B9B': 'SHOULD use a status code of 200 on variable coercion failure when accepting application/json',
}

test('the audits of GraphQL over HTTP find no error, and no warnings except about three statuses', async () => {
  await using app = await startTestApp({ RATE_LIMIT_MAX: '0' })
  const fetchFn = (url: string, init?: RequestInit) => within(fetch(url, init), `an answer from ${url}`)
  const results = await Promise.all(serverAudits({ url: `${app.url}/graphql`, fetchFn }).map(({ fn }) => fn()))
  assert.ok(results.length >= 61, `${results.length} audits`)
  const amiss = results.filter(({ status }) => status !== 'ok')
  assert.deepEqual(
    Object.fromEntries(amiss.map(({ id, name, status }) => [id, `${status}: ${name}`])),
    Object.fromEntries(Object.entries(accepted).map(([id, name]) => [id, `warn: ${name}`])),
  )
})
