import type { Random } from './random.ts'

/**
 * Changes bytes in one place. It does not move bytes: the value of a header must not become a path, because paths are
 * logged.
 */
export function mutateBytes(bytes: Buffer, random: Random): Buffer {
  if (bytes.length === 0) return Buffer.from([random.below(256)])
  const at = random.below(bytes.length)
  const end = Math.min(bytes.length, at + 1 + random.below(random.pick([1, 4, 30])))
  const around = (middle: Buffer, from = at, to = at) =>
    Buffer.concat([bytes.subarray(0, from), middle, bytes.subarray(to)])
  switch (random.below(7)) {
    case 0:
      return around(Buffer.from([(bytes[at] ?? 0) ^ (1 << random.below(8))]), at, at + 1)
    case 1:
      return around(Buffer.from([random.below(256)]), at, at + 1)
    case 2:
      return around(Buffer.from(Array.from({ length: random.between(1, 8) }, () => random.below(256))))
    case 3:
      return around(Buffer.from(random.pick(sequences), 'latin1'))
    case 4:
      return around(Buffer.alloc(0), at, end)
    case 5:
      return around(repeated(bytes.subarray(at, end), random.pick([1, 2, 10, 300])))
    default:
      return bytes.subarray(0, at)
  }
}

function repeated(bytes: Buffer, times: number): Buffer {
  return Buffer.concat(Array.from({ length: times }, () => bytes))
}

const sequences: readonly string[] = [
  ...['\0', '\r', '\n', '\r\n', '\r\n\r\n', '\n\n', '0\r\n\r\n', '\t', ' ', ':', ',', '"', '\\', '\\u0000', '\\ud800'],
  ...[
    '%',
    '%00',
    '%zz',
    '%c0%af',
    '\xff',
    '\xc3\x28',
    '\xed\xa0\x80',
    '\xf4\x90\x80\x80',
    '{',
    '}',
    '[',
    ']',
    '#',
    '?',
    '&',
  ],
]
