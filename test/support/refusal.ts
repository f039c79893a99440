import assert from 'node:assert/strict'
import type { RawResponse } from './http.ts'

/** Checks that an answer has the shape of all errors: its status, and `{"error": "<text>"}` as JSON, and an id. */
export function assertRefusal(response: RawResponse, status: number, text?: string): void {
  const { headers, body } = response
  assert.equal(response.status, status, body)
  assert.match(headers.get('content-type') ?? '', /^application\/json(; charset=utf-8)?$/)
  assert.match(headers.get('x-request-id') ?? '', /^[\w.:-]{1,128}$/)
  const parsed: unknown = JSON.parse(body)
  assert.deepEqual(Object.keys(Object(parsed)), ['error'], body)
  const { error } = parsed as { error: unknown }
  if (typeof error !== 'string' || error === '') assert.fail(body)
  if (text !== undefined) assert.equal(error, text)
}
