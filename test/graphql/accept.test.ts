import assert from 'node:assert/strict'
import { test } from 'node:test'
import { preferredType } from '../../src/http/accept.ts'

const json = 'application/json'
const modern = 'application/graphql-response+json'
const page = 'text/html'
const types = [json, modern, page] as const

const cases: readonly (readonly [accept: string | undefined, preferred: string | undefined])[] = [
  [undefined, json],
  ['*/*', json],
  ['application/*', json],
  ['text/*', page],
  [`${modern}, ${json}`, json],
  [`${modern}, ${json};q=0.9`, modern],
  [`${json}; q=0.1 , ${modern} ; Q=0.2`, modern],
  [`${json};charset=utf-8;q=0.5, ${modern};charset=utf-8`, modern],
  [json.toUpperCase(), json],
  [`*/*, ${json};q=0`, modern],
  [`*/*;q=0.1, ${page}`, page],
  [`application/*;q=0.2, ${modern};q=0.1`, json],
  // The headers that browsers send for a page, and for a request of a script.
  ['text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8', page],
  ['*/*,text/html', page],
  [`${modern}, */*`, modern],
  [`${page}, ${json}`, json],
  [`${page}, application/*`, page],
  [`${page};q=0.9, */*`, json],
  ['application/json, text/plain, */*', json],
  ['image/png', undefined],
  [`${json};q=0`, undefined],
  [`${json};q=nonsense`, undefined],
  ['', undefined],
  [';;;', undefined],
]

test('an Accept header prefers the type of the greatest quality, among equals the first of ours, or nothing', () => {
  for (const [accept, preferred] of cases) assert.equal(preferredType(accept, types), preferred, accept)
})

test('an Accept header of more than 2,048 characters counts as none', () => {
  const longest = `${page}${' '.repeat(2048 - page.length)}`
  assert.equal(preferredType(longest, types), page)
  assert.equal(preferredType(`${longest} `, types), json)
})
