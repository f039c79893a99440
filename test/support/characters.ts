import fc from 'fast-check'

const surrogates = { first: 0xd800, count: 0x800 }

/** Any Unicode character. The `binary` unit of fast-check is the same, but takes a second of CPU to prepare. */
export const anyCharacter = fc
  .nat(0x10ffff - surrogates.count)
  .map(code => String.fromCodePoint(code < surrogates.first ? code : code + surrogates.count))
