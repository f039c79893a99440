import { depthOf, interestingNumbers, interestingText, names, type Random } from './values.ts'

/**
 * Changes bytes in one place. It does not move bytes: the value of a header must not become a path, because paths are
 * logged.
 */
export function mutateBytes(bytes: Buffer, random: Random): Buffer {
  if (bytes.length === 0) return Buffer.from([random.below(256)])
  const at = random.below(bytes.length)
  const end = Math.min(bytes.length, at + 1 + random.below(random.pick([1, 4, 30])))
  const put = (middle: readonly number[] | Buffer, to = at) =>
    Buffer.concat([bytes.subarray(0, at), Buffer.from(middle), bytes.subarray(to)])
  return random.any(
    () => put([(bytes[at] ?? 0) ^ (1 << random.below(8))], at + 1),
    () => put([random.below(256)], at + 1),
    () => put(Array.from({ length: random.between(1, 8) }, () => random.below(256))),
    () => put(Buffer.from(random.pick(sequences), 'latin1')),
    () => put([], end),
    () => put(Buffer.concat(Array.from({ length: random.pick([1, 2, 10, 300]) }, () => bytes.subarray(at, end)))),
    () => bytes.subarray(0, at),
  )
}

const sequences: readonly string[] = [
  ...['\0', '\r', '\n', '\r\n', '\r\n\r\n', '\n\n', '0\r\n\r\n', '\t', ' ', '\\u0000', '\\ud800'],
  ...[...':,"\\%{}[]#?&', '%00', '%zz', '%c0%af', '\xff', '\xc3\x28', '\xed\xa0\x80', '\xf4\x90\x80\x80'],
]

type Entry = readonly [key: string, text: string]

/** Changes one value in a JSON text, which can then have duplicate keys and numbers of any size. */
export function mutateJson(text: string, random: Random): string {
  const root: unknown = JSON.parse(text)
  let left = random.below(countOf(root))
  const write = (key: string, value: unknown): readonly Entry[] => {
    const isChosen = left-- === 0
    const inner = isContainer(value) ? Object.entries(value).flatMap(([name, item]) => write(name, item)) : []
    const plain = !isContainer(value)
      ? JSON.stringify(value)
      : Array.isArray(value)
        ? `[${inner.map(([, item]) => item)}]`
        : `{${inner.map(([name, item]) => `${JSON.stringify(name)}:${item}`)}}`
    return isChosen ? replacementsFor(key, value, plain, random) : [[key, plain]]
  }
  return write('x', root)
    .map(([, item]) => item)
    .join('')
}

function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

const countOf = (value: unknown): number =>
  isContainer(value) ? Object.values(value).reduce<number>((sum, item) => sum + countOf(item), 1) : 1

function replacementsFor(key: string, value: unknown, plain: string, random: Random): readonly Entry[] {
  const isDocument = key === 'query' && typeof value === 'string'
  if (isDocument && random.chance(0.8)) return [[key, JSON.stringify(mutateGraphQL(value, random))]]
  const other = () => JSON.stringify(interestingText(random))
  return random.any<readonly Entry[]>(
    () => [[key, other()]],
    () => [[key, random.pick(interestingNumbers)]],
    () => [[key, random.pick(['null', 'true', 'false', '[]', '{}', '{"toString":null}'])]],
    () => [[key, nested(plain, random)]],
    () => [[key, nested(plain, random)]],
    () => [[key, typeof value === 'string' ? JSON.stringify(edited(value, random)) : `[${plain}]`]],
    () => [],
    () => [
      [key, plain],
      [key, random.chance(0.5) ? plain : other()],
    ],
    () => [[random.pick(names), plain]],
    () => [
      [key, plain],
      [random.pick(names), random.pick(['1', '"x"', 'null', '{"a":1}'])],
    ],
  )
}

function nested(text: string, random: Random): string {
  const [open, close] = random.pick(['[ ]', '{"a": }', '[[], ]']).split(' ') as [string, string]
  const depth = depthOf(random)
  return `${open.repeat(depth)}${text}${close.repeat(depth)}`
}

function edited(text: string, random: Random): string {
  const at = random.below(text.length + 1)
  return `${text.slice(0, at)}${interestingText(random)}${text.slice(at + random.below(2))}`
}

/** Changes a document in one place. */
export function mutateGraphQL(text: string, random: Random): string {
  const tokens: readonly string[] = text.match(/"(?:[^"\\]|\\.)*"|\.{3}|[\w$@]+|\s+|[^\w\s]/g) ?? []
  if (tokens.length === 0) return random.pick(inserted)
  const at = random.below(tokens.length)
  const token = tokens[at] ?? ''
  const put = (...items: readonly string[]) => [...tokens.slice(0, at), ...items, ...tokens.slice(at + 1)].join('')
  return random.any(
    () => put(),
    () => put(Array.from({ length: random.pick([2, 2, 3, 40, 700, 2_100]) }, () => token).join(' ')),
    () => put(token, ' ', random.pick(inserted), ' '),
    () => put(replacementFor(token, random)),
    () => text.replace(/\d+|"[^"]*"/, () => literal(random)),
  )
}

const inserted: readonly string[] = [
  ...[...'{}()[]:!=|&@$"#,\\', '...', '"""', '\ufeff', '\0', '"\\ud800"', '"\\u{110000}"'],
  ...'query mutation subscription fragment on null true id __typename @deprecated ...F ...Nobody'.split(' '),
  ...['@skip(if: true)', '@include(if: $nobody)', '@skip(if: false) @include(if: true)', '@nobody(x: 1)', 'a: id'],
  ...['... { id }', '... on Post { id }', '... on Nobody { id }', '$v: Int = 1', '__proto__: id', '{ __typename }'],
  ...['fragment F on Post { ...F }', 'fragment F on Post { id } fragment F on Post { id }', 'type X { a: Int }'],
  ...['limit: 1000', 'offset: 100000', 'id: 1', 'after: "1"', '(limit: 3, offset: 100000)'],
]

function replacementFor(token: string, random: Random): string {
  if (/^\s+$/.test(token)) return random.pick(['', ',', '\t', '\r', '\n'.repeat(500), ' '.repeat(70_000), '# x\n'])
  if (/^\d+$/.test(token)) return random.pick(interestingNumbers)
  if (token.startsWith('"')) return literal(random)
  const fields = '__proto__ constructor posts author comments me users createPost'.split(' ')
  return random.chance(0.8) ? random.pick([...fields, 'N'.repeat(129), 'n'.repeat(60_000)]) : interestingText(random)
}

/** A literal of any type. */
function literal(random: Random): string {
  const depth = Math.min(depthOf(random), 2_500)
  return random.any(
    () => random.pick(interestingNumbers),
    () => JSON.stringify(interestingText(random)),
    () => `${'['.repeat(depth)}1${']'.repeat(depth)}`,
    () => `${'{a:'.repeat(depth)}1${'}'.repeat(depth)}`,
    () => random.pick([...'null true RED $nobody "" [] {} -1 1.0'.split(' '), '""" \n a """', '{a: 1, a: 2}']),
  )
}
