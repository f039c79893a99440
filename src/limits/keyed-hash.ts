/**
 * A 64-bit hash of a text, with a secret key (HalfSipHash-2-4). Clients choose some of the texts, and without the key
 * they cannot find two with the same hash. The two halves are fields, because this runs for every request.
 */
export class KeyedHash {
  high = 0
  low = 0
  readonly #first: number
  readonly #second: number

  constructor(first: number, second: number) {
    this.#first = first
    this.#second = second
  }

  of(text: string): void {
    let a = this.#first | 0
    let b = this.#second ^ 0xee
    let c = this.#first ^ 0x6c796765
    let d = this.#second ^ 0x74656462
    const { length } = text
    const words = (length + 1) >> 1
    // The text in pairs of characters, then its length, then the rounds that end each half.
    for (let step = 0; step <= words + 2; step++) {
      let word = 0
      let rounds = 2
      if (step < words)
        word = text.charCodeAt(2 * step) | (2 * step + 1 < length ? text.charCodeAt(2 * step + 1) << 16 : 0)
      else if (step === words) word = length
      else {
        rounds = 4
        if (step === words + 1) c ^= 0xee
        else b ^= 0xdd
      }
      d ^= word
      for (let round = 0; round < rounds; round++) {
        a = (a + b) | 0
        b = ((b << 5) | (b >>> 27)) ^ a
        a = (a << 16) | (a >>> 16)
        c = (c + d) | 0
        d = ((d << 8) | (d >>> 24)) ^ c
        a = (a + d) | 0
        d = ((d << 7) | (d >>> 25)) ^ a
        c = (c + b) | 0
        b = ((b << 13) | (b >>> 19)) ^ c
        c = (c << 16) | (c >>> 16)
      }
      a ^= word
      if (step === words + 1) this.high = b ^ d
    }
    this.low = b ^ d
  }
}
