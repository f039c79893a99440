import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import {
  type DocumentNode,
  OverlappingFieldsCanBeMergedRule,
  parse,
  type SelectionSetNode,
  specifiedRules,
  type ValidationRule,
  validate,
  visit,
} from 'graphql'
import { documentBounds } from '../../src/graphql/language/limits/document.ts'
import { fieldsCanBeMerged } from '../../src/graphql/language/merging.ts'
import { loadSchema } from '../../src/graphql/language/schema.ts'
import { runs } from '../support/form.ts'
import type { Data } from './support/data.ts'
import { anyConflict, anyQuery } from './support/operations.ts'

const numRuns = runs(400, 20_000)
const schema = loadSchema()
const otherRules = specifiedRules.filter(rule => rule !== OverlappingFieldsCanBeMergedRule)
const noData: Data = { users: [], posts: [], comments: [] }

function accepts(rule: ValidationRule, document: DocumentNode): boolean {
  return validate(schema, document, [rule]).length === 0
}

describe('The check whether fields with one key can be merged', () => {
  it('gives the same result as graphql-js, for any document that is otherwise valid', t => {
    const judged = { valid: 0, invalid: 0 }
    let seen = 0
    const documents = fc.oneof(
      { weight: 4, arbitrary: anyConflict(noData) },
      { weight: 1, arbitrary: anyQuery(noData) },
    )
    fc.assert(
      fc.property(documents, ({ text }) => {
        const document = parse(text)
        // The generator obeys the other rules. This is checked only sometimes, because validation is slow.
        if (++seen % 20 === 0) assert.deepEqual(validate(schema, document, otherRules), [])
        const expected = accepts(OverlappingFieldsCanBeMergedRule, document)
        assert.equal(accepts(fieldsCanBeMerged, document), expected)
        judged[expected ? 'valid' : 'invalid']++
      }),
      { numRuns },
    )
    t.diagnostic(JSON.stringify(judged))
    assert.ok(Math.min(judged.valid, judged.invalid) > numRuns / 10, JSON.stringify(judged))
  })

  const conflicts: Readonly<Record<string, string>> = {
    'two fields': '{ a: __typename a: me { id } }',
    'two scalars': '{ me { a: id a: name } }',
    'a field and an alias': '{ me { name name: email } }',
    'other arguments': '{ posts(limit: 1) { id } posts(limit: 2) { id } }',
    'an argument and none': '{ posts(limit: 1) { id } posts { id } }',
    'a value and a variable': 'query ($n: Int = 1) { posts(limit: 1) { id } posts(limit: $n) { id } }',
    'ids of another kind': '{ user(id: 1) { id } user(id: "1") { id } }',
    'deep down': '{ me { posts { author { a: id } } } me { posts { author { a: name } } } }',
    'in a fragment': '{ me { ...F a: id } } fragment F on User { a: name }',
    'between fragments': '{ me { ...F ...G } } fragment F on User { a: id } fragment G on User { a: name }',
    'within a fragment': '{ me { ...F } } fragment F on User { a: id a: name }',
    'below what fragments share': '{ me { ...F } me { posts { a: id } } } fragment F on User { posts { a: title } }',
    'only when included': '{ me { a: id @skip(if: true) a: name @include(if: true) } }',
    'in the schema': '{ __schema { types { a: name a: kind } } }',
  }
  for (const [what, text] of Object.entries(conflicts)) {
    it(`refuses ${what}, as graphql-js does`, () => {
      const document = parse(text)
      assert.equal(accepts(OverlappingFieldsCanBeMergedRule, document), false)
      const [error] = validate(schema, document, [fieldsCanBeMerged])
      assert.match(error?.message ?? '', /^Fields "\w+" conflict because /)
      assert.equal(error?.locations?.length, 2)
    })
  }

  it('allows equal fields in different forms: arguments in another order, conditions, inline fragments', () => {
    const text = `query ($n: Int, $yes: Boolean!) {
      posts(limit: $n, offset: 1) @skip(if: $yes) { id }
      ... { posts(offset: 1, limit: $n) @include(if: $yes) { ... on Post { id } author { a: id } } }
      b: posts { author { a: name } }
    }`
    assert.equal(accepts(OverlappingFieldsCanBeMergedRule, parse(text)), true)
    assert.equal(accepts(fieldsCanBeMerged, parse(text)), true)
  })
})

describe('The work of this check', () => {
  // Documents of the maximum size. Algorithms that compare pairs, or follow every spread, have far more work with some
  // of them.
  const hostile: Readonly<Record<string, { readonly mayBeRefused?: true; text(size: number): string }>> = {
    'one field many times': { text: size => `{${repeated(size, () => '__typename')}}` },
    'one object many times': { text: size => `{${repeated(size / 4, () => 'me { id }')}}` },
    'objects that nest': {
      text: size => `{${repeated(size / 14, () => 'me { posts { author { posts { id } } } }')}}`,
    },
    'many keys': { text: size => `{ me {${repeated(size / 3, at => `k${at}: id`)}}}` },
    'one fragment spread many times': {
      text: size => `{ me {${repeated(size / 2, () => '...F')}}} fragment F on User { id name }`,
    },
    'fragments that double': {
      text: size =>
        `{ me { ...F0 } } ${repeated(size / 14, at => `fragment F${at} on User { ...F${at + 1} ...F${at + 1} }`)}
         fragment F${Math.floor(size / 14)} on User { id }`,
    },
    'fragments that all spread all behind them': {
      text: size => {
        const count = Math.floor(Math.sqrt(size)) - 4
        const spreads = (from: number) => repeated(count - from - 1, at => `...F${from + 1 + at}`)
        return `{ me { ...F0 } } ${repeated(count, at => `fragment F${at} on User { id ${spreads(at)} }`)}`
      },
    },
    'few fragments below many keys, level by level': {
      text: size => {
        const keys = (level: number, field: string) =>
          repeated(size / 45, at => `k${at}: ${field} { ${level < 5 ? `...L${level}` : 'id'} }`)
        const levels = ['posts', 'author', 'posts', 'author'].map(
          (field, at) =>
            `fragment L${at} on ${at % 2 === 0 ? 'User' : 'Post'} { ${keys(at === 3 ? 5 : at + 1, field)} }`,
        )
        return `{${keys(0, 'me')}} ${levels.join(' ')}`
      },
    },
    'a fragment of many keys in many places': {
      text: size =>
        `{${repeated(size / 12, at => `k${at}: me { ...F }`)}} fragment F on User {${repeated(size / 8, at => `k${at}: id`)}}`,
    },
    'fragments that meet in ever another company': { mayBeRefused: true, text: company },
  }

  for (const [what, { text, mayBeRefused = false }] of Object.entries(hostile)) {
    it(`visits at most fifty selections per token: ${what}`, t => {
      const document = parse(text(documentBounds.tokens - 50), { maxLexicalTokens: documentBounds.tokens })
      const work = workOn(document)
      t.diagnostic(`${work} looks`)
      assert.ok(mayBeRefused || accepts(fieldsCanBeMerged, document))
      assert.ok(work < 50 * documentBounds.tokens, `${work} looks`)
    })
  }
})

function repeated(count: number, part: (at: number) => string): string {
  return Array.from({ length: Math.floor(count) }, (_, at) => part(at)).join(' ')
}

/** Five levels of eight fragments. Every field spreads two fragments of the next level, so that new combinations arise. */
function company(size: number): string {
  const [fragments, keys] = [8, Math.round((size * 5) / documentBounds.tokens)]
  let random = 1
  const next = () => {
    random = (random * 1_103_515_245 + 12_345) % 2 ** 31
    return Math.floor(random / 65_536) % fragments
  }
  const two = (level: number) => {
    const one = next()
    return `...L${level}F${one} ...L${level}F${(one + 1 + (next() % (fragments - 1))) % fragments}`
  }
  const bodyOf = (level: number) =>
    repeated(keys, at =>
      level === 4 ? `k${at}: id` : `k${at}: ${level % 2 === 0 ? 'posts' : 'author'} { ${two(level + 1)} }`,
    )
  const definitions = [0, 1, 2, 3, 4].map(level =>
    repeated(fragments, at => `fragment L${level}F${at} on ${level % 2 === 0 ? 'User' : 'Post'} { ${bodyOf(level)} }`),
  )
  return `{${repeated(size / 97, at => `k${at}: me { ${two(0)} }`)}} ${definitions.join(' ')}`
}

/** The number of selections that the rule visits, repeated visits included. */
function workOn(document: DocumentNode): number {
  let looked = 0
  const counting = visit(document, {
    SelectionSet: {
      leave({ selections, ...rest }: SelectionSetNode) {
        const get = () => {
          looked += selections.length
          assert.ok(looked < 2_000_000, 'more than two million visited selections')
          return selections
        }
        return Object.defineProperty({ ...rest }, 'selections', { get, enumerable: true })
      },
    },
  })
  const workOf = (rules: readonly ValidationRule[]) => {
    looked = 0
    validate(schema, counting, rules)
    return looked
  }
  const withoutRule = workOf([])
  return workOf([fieldsCanBeMerged]) - withoutRule
}
