/** A pseudo-random number generator (mulberry32): the same seed gives the same numbers. */
export class Random {
  #state: number

  /** A separate generator for each index, so that one case can be repeated without the cases before it. */
  constructor(seed: number, index: number) {
    this.#state = Math.imul(seed ^ Math.imul(index + 1, 0x9e3779b1), 0x85ebca6b) >>> 0
  }

  /** A number from 0, inclusive, to 1, exclusive. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }

  below(count: number): number {
    return Math.floor(this.next() * count)
  }

  between(least: number, most: number): number {
    return least + this.below(most - least + 1)
  }

  chance(probability: number): boolean {
    return this.next() < probability
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[this.below(items.length)] as Item
  }

  /** The result of one of these functions. */
  any<Result>(...makers: readonly (() => Result)[]): Result {
    return this.pick(makers)()
  }
}

/** Texts that often cause errors: special delimiters, encodings and lengths, and words with a meaning in some language. */
export function interestingText(random: Random): string {
  if (random.chance(0.02)) return random.pick(['x', '🎈', '"', '\\', '\u0001']).repeat(random.pick([70_000, 300_000]))
  if (random.chance(0.15)) return random.pick([...'xé🎈 {%']).repeat(random.pick([129, 257, 321, 2049]))
  return random.pick(texts)
}

const texts: readonly string[] = [
  ...['', ' ', '\n', '\0', 'a\0b', '\ud800', '\udc00a', '\ufeff', '\u2028', '\u202e', '\u007f', '\u0085'],
  ...'__proto__ constructor prototype toString hasOwnProperty null undefined NaN true [object_Object] {{7*7}} %s%n'.split(
    ' ',
  ),
  ...'0 -1 1.5 01 +1 1e3 0x10 １ 9007199254740993 99999999999999999999 Infinity $1 ? ../../etc/passwd <script>'.split(
    ' ',
  ),
  ...["' OR '1'='1", '"; drop table users; --', 'A'.repeat(63), 'z'.repeat(128)],
  ...'2026-02-30T00:00:00Z 0000-01-01T00:00:00Z +275760-09-13T00:00:00Z 2026-01-01T24:00:00Z 2026-01-01'.split(' '),
  ...'Ünï 👩‍👧 İ ß a@b @ a@ http://[::1 javascript:1 data:,'.split(' '),
]

/** Numbers in JSON notation. JavaScript cannot represent some of them. */
export const interestingNumbers: readonly string[] = [
  ...'0 -0 -1 1 0.5 1.5 1e0 1E400 -1e999 1e-400 5e-324 1.7976931348623157e308 127 255 256 999 1000 1001'.split(' '),
  ...'10000 65536 100000 100001 2147483647 2147483648 -2147483649 4294967296 9007199254740991'.split(' '),
  ...'9007199254740992 9007199254740993 9223372036854775808 1000000000000 1000000000000.01 0.001 0.005'.split(' '),
  ...['1.0000000000000001', '123456789012345678901234567890'],
  ...[`1${'0'.repeat(400)}`, `0.${'0'.repeat(400)}1`, `0.1${'0'.repeat(5000)}`],
]

export const names: readonly string[] = [
  ...['', ' ', '\0', '\ud800'],
  ...'__proto__ constructor prototype toString length then valueOf $ref id role password token age items'.split(' '),
  ...'query variables extensions payload type Authorization'.split(' '),
]

/** A depth of nesting: small, near a limit, or more than a stack can hold. */
export function depthOf(random: Random): number {
  return random.chance(0.25)
    ? random.pick([2_000, 6_000, 20_000, 100_000])
    : random.pick([1, 2, 5, 31, 32, 33, 63, 64, 65, 200, 1_000])
}
