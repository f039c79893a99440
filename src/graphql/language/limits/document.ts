import { Lexer, Source, TokenKind } from 'graphql'
import { refusal } from '../../errors.ts'

/** The most that a document may have: how long it and its names are, and how deep its parts nest. */
export const documentBounds = Object.freeze({
  bytes: 64 * 1024,
  tokens: 2000,
  nameLength: 128,
  /** Lists and objects within each other as values, and lists within each other as types. */
  literalDepth: 32,
  /** Braces within each other outside of values. What is read may nest less: see `depth.ts`. */
  selectionDepth: 128,
})

/**
 * Refuses a document that is beyond its bounds; throws a `GraphQLError` where it has a character that begins no token. It
 * reads token by token: the parser calls itself for everything that nests, and would run out of stack.
 */
export function holdToBounds(text: string): void {
  const { bytes, tokens, nameLength, literalDepth, selectionDepth } = documentBounds
  if (text.length > bytes || Buffer.byteLength(text) > bytes) throw tooLarge(`is larger than ${bytes} bytes`)
  const lexer = new Lexer(new Source(text))
  // The depths are exact up to the first mistake in the syntax, and no parser gets beyond that.
  let [parentheses, literals, selections] = [0, 0, 0]
  for (let count = 1; ; count++) {
    const { kind, start, end } = lexer.advance()
    if (kind === TokenKind.EOF) return
    if (count > tokens) throw tooLarge(`has more than ${tokens} tokens`)
    switch (kind) {
      case TokenKind.NAME:
        if (end - start > nameLength) throw tooLarge(`has a name of more than ${nameLength} characters`)
        break
      case TokenKind.PAREN_L:
        parentheses++
        break
      case TokenKind.PAREN_R:
        parentheses--
        break
      case TokenKind.BRACKET_L:
        literals++
        break
      case TokenKind.BRACKET_R:
        literals--
        break
      case TokenKind.BRACE_L:
        // Within parentheses there are no selections.
        if (parentheses > 0) literals++
        else selections++
        break
      case TokenKind.BRACE_R:
        if (parentheses > 0) literals--
        else selections--
        break
    }
    if (literals > literalDepth) throw tooLarge(`has a literal or a type that nests more than ${literalDepth} deep`)
    if (selections > selectionDepth) throw tooLarge(`has selections that nest more than ${selectionDepth} deep`)
  }
}

function tooLarge(reason: string) {
  return refusal('DOCUMENT_TOO_LARGE', `The document ${reason}.`)
}
