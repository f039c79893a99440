import fc from 'fast-check'

const surrogates = { first: 0xd800, count: 0x800 }

/** Any character of Unicode. The unit `binary` of fast-check means the same, but takes a second of CPU to prepare. */
export const anyCharacter = fc
  .nat(0x10ffff - surrogates.count)
  .map(code => String.fromCodePoint(code < surrogates.first ? code : code + surrogates.count))
