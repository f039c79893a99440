import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { preferredType } from '../../src/server/accept.ts'

const json = 'application/json'
const modern = 'application/graphql-response+json'
const page = 'text/html'
const types = [json, modern, page] as const

const cases: readonly (readonly [accept: string | undefined, preferred: string | undefined])[] = [
  [undefined, json],
  ['*/*', json],
  ['application/*', json],
  [json, json],
  [modern, modern],
  [page, page],
  ['text/*', page],
  [`${modern}, ${json}`, json],
  [`${modern}, ${json};q=0.9`, modern],
  [`${json};q=0.1, ${modern};q=0.2`, modern],
  [`${json}; q=0.1 , ${modern} ; Q=0.2`, modern],
  [`${json};charset=utf-8;q=0.5, ${modern};charset=utf-8`, modern],
  [json.toUpperCase(), json],
  [`*/*, ${json};q=0`, modern],
  [`*/*;q=0.1, ${page}`, page],
  [`application/*;q=0.2, ${modern};q=0.1`, json],
  // The headers that browsers send for a page, and for a request of a script.
  ['text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8', page],
  ['text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', page],
  ['text/html,*/*', page],
  ['*/*,text/html', page],
  ['text/*, */*', page],
  [`${modern}, */*`, modern],
  [`${page}, ${json}`, json],
  [`${page}, application/*`, page],
  [`${page};q=0.9, */*`, json],
  ['application/json, text/plain, */*', json],
  ['application/json, multipart/mixed', json],
  ['application/graphql-response+json, application/json;q=0.9', modern],
  ['image/png', undefined],
  [`${json};q=0`, undefined],
  [`${json};q=nonsense`, undefined],
  ['', undefined],
  [',', undefined],
  ['garbage', undefined],
  [';;;', undefined],
]

for (const [accept, preferred] of cases) {
  test(`Accept: ${accept ?? '(none)'} prefers ${preferred ?? 'nothing of ours'}`, () => {
    assert.equal(preferredType(accept, types), preferred)
  })
}

test('for any Accept header, the preferred type is one that we support and that the header does not exclude', () => {
  const range = fc.constantFrom(...types, '*/*', 'application/*', 'text/*', 'image/png', 'x', '')
  const quality = fc.option(fc.constantFrom('0', '0.1', '0.5', '1', '2', '-1', 'x', ''), { nil: undefined })
  const ranges = fc.array(fc.tuple(range, quality), { minLength: 1, maxLength: 5 })
  fc.assert(
    fc.property(ranges, all => {
      const accept = all.map(([each, q]) => (q === undefined ? each : `${each};q=${q}`)).join(', ')
      const preferred = preferredType(accept, types)
      if (preferred === undefined) return
      assert.ok(types.includes(preferred))
      const [group = ''] = preferred.split('/')
      const matching = [preferred, `${group}/*`, '*/*'].map(pattern => all.filter(([each]) => each === pattern))
      const [named = []] = matching.filter(found => found.length > 0)
      assert.ok(
        named.some(([, q]) => q === undefined || Number(q) > 0),
        accept,
      )
    }),
  )
})

test('an Accept header of more than 2,048 characters counts as none', () => {
  const longest = `${page}${' '.repeat(2048 - page.length)}`
  assert.equal(preferredType(longest, types), page)
  assert.equal(preferredType(`${longest} `, types), json)
})
