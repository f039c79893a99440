import { depthOf, interestingNumbers, interestingText } from './interesting.ts'
import type { Random } from './random.ts'

/** Changes a document in one place: a token, or the repetition or nesting of a part. */
export function mutateGraphQL(text: string, random: Random): string {
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|\.{3}|[\w$@]+|\s+|[^\w\s]/g) ?? []
  if (tokens.length === 0) return random.pick(inserted)
  const at = random.below(tokens.length)
  const token = tokens[at] ?? ''
  const put = (...items: readonly string[]) => [...tokens.slice(0, at), ...items, ...tokens.slice(at + 1)].join('')
  switch (random.below(8)) {
    case 0:
      return put()
    case 1:
      return put(Array.from({ length: random.pick([2, 2, 3, 40, 700, 2_100]) }, () => token).join(' '))
    case 2: {
      const other = random.below(tokens.length)
      return tokens.map((each, index) => (index === at ? tokens[other] : index === other ? token : each)).join('')
    }
    case 3:
      return put(token, ' ', random.pick(inserted), ' ')
    case 4:
      return put(replacementFor(token, random))
    case 5:
      return text.replace(/\d+|"[^"]*"/, () => literal(random))
    case 6:
      return random.chance(0.7) ? widened(text, random) : multiplied(text, random)
    default:
      return deepened(text, random)
  }
}

const inserted: readonly string[] = [
  ...[
    '{',
    '}',
    '(',
    ')',
    '[',
    ']',
    ':',
    '!',
    '=',
    '|',
    '&',
    '@',
    '$',
    '...',
    '"',
    '"""',
    '#',
    ',',
    '\ufeff',
    '\0',
    '\\',
  ],
  ...[
    'query',
    'mutation',
    'subscription',
    'fragment',
    'on',
    'null',
    'true',
    'id',
    '__typename',
    '__schema { types { name } }',
  ],
  ...[
    '@skip(if: true)',
    '@include(if: $nobody)',
    '@skip(if: false) @include(if: true)',
    '@deprecated',
    '@nobody(x: 1)',
  ],
  ...[
    '... { id }',
    '... on Post { id }',
    '... on Nobody { id }',
    '...F',
    '...Nobody',
    '$v: Int = 1',
    'a: id',
    '__proto__: id',
  ],
  ...[
    'fragment F on Post { ...F }',
    'fragment F on Post { id } fragment F on Post { id }',
    '{ __typename }',
    'type X { a: Int }',
  ],
  ...[
    'limit: 1000',
    'offset: 100000',
    'id: 1',
    'after: "1"',
    '(limit: 3, offset: 100000)',
    '"\\ud800"',
    '"\\u{110000}"',
  ],
]

function replacementFor(token: string, random: Random): string {
  if (/^\s+$/.test(token)) return random.pick(['', ',', '\t', '\r', '\n'.repeat(500), ' '.repeat(70_000), '# x\n'])
  if (/^\d+$/.test(token)) return random.pick(interestingNumbers)
  if (token.startsWith('"')) return literal(random)
  const names = [
    '__proto__',
    'constructor',
    'posts',
    'author',
    'comments',
    'me',
    'users',
    'createPost',
    'N'.repeat(129),
    'n'.repeat(60_000),
  ]
  return random.chance(0.8) ? random.pick(names) : interestingText(random)
}

/** A literal of any type. */
function literal(random: Random): string {
  const depth = Math.min(depthOf(random), 2_500)
  switch (random.below(5)) {
    case 0:
      return random.pick(interestingNumbers)
    case 1:
      return JSON.stringify(interestingText(random))
    case 2:
      return `${'['.repeat(depth)}1${']'.repeat(depth)}`
    case 3:
      return `${'{a:'.repeat(depth)}1${'}'.repeat(depth)}`
    default:
      return random.pick([
        'null',
        'true',
        'RED',
        '$nobody',
        '""',
        '""" \n a """',
        '[]',
        '{}',
        '-1',
        '1.0',
        '{a: 1, a: 2}',
      ])
  }
}

/** Repeats the last field of one level many times, with different aliases. */
function widened(text: string, random: Random): string {
  const closing = random.chance(0.5) ? text.indexOf('}') : text.lastIndexOf('}')
  const before = text.slice(0, Math.max(0, closing))
  const field = random.chance(0.5) ? (/\w+\s*$/.exec(before)?.[0] ?? 'id') : random.pick(repeatable)
  const count = random.pick([3, 30, 99, 150, 250, 400, 500, 600])
  const more = Array.from({ length: count }, (_, index) => `x${index}: ${field}`).join(' ')
  return `${before} ${more} ${text.slice(before.length)}`
}

const repeatable = ['content', 'content', 'text', '__typename', 'email', 'author { name }', 'posts(limit: 1) { id }']

/** Repeats the whole selection of the operation many times, with different aliases. */
function multiplied(text: string, random: Random): string {
  const start = text.indexOf('{ f0: ')
  const inner = text.slice(start + 1, text.lastIndexOf('}'))
  if (start < 0) return text + text
  const copies = Array.from({ length: random.pick([2, 5, 20, 60, 140]) }, (_, index) => {
    return inner.replaceAll(/\bf(\d): /g, `f$1_${index}: `)
  })
  return `${text.slice(0, start)}{ ${copies.join(' ')} }`
}

/** Adds levels: nested fields, nested fragments, or conditions. */
function deepened(text: string, random: Random): string {
  const depth = Math.min(depthOf(random), 700)
  const [open, close] = random.pick([
    [' author { posts(limit: 1) {', '} }'],
    [' ... {', '}'],
    [' ... @include(if: true) {', '}'],
    [' a {', '}'],
  ] as const)
  const at = Math.max(0, text.indexOf('}'))
  const nest = `${open.repeat(depth)} id ${close.repeat(depth)}`
  if (random.chance(0.7)) return `${text.slice(0, at)}${nest}${text.slice(at)}`
  const chain = Array.from({ length: depth }, (_, index) => `fragment C${index} on Post { ...C${index + 1} id }`).join(
    ' ',
  )
  return `${text.slice(0, at)} ...C0 ${text.slice(at)} ${chain} fragment C${depth} on Post { id }`
}
