import { Lexer, Source, TokenKind } from 'graphql'
import { refusal } from '../../errors.ts'

/** Limits of a document: its size, the length of its names, and the nesting of its parts. */
export const documentBounds = Object.freeze({
  bytes: 64 * 1024,
  tokens: 2000,
  nameLength: 128,
  /** Nesting of lists and objects in values, and of lists in types. */
  literalDepth: 32,
  /** Nesting of braces outside of values. The nesting of fields has a lower limit: see `depth.ts`. */
  selectionDepth: 128,
})

/**
 * Refuses a document that is over a limit. Throws a `GraphQLError` at a character that starts no token. It reads token
 * by token, because the parser is recursive and deep nesting would overflow its stack.
 */
export function checkBounds(text: string): void {
  const { bytes, tokens, nameLength, literalDepth, selectionDepth } = documentBounds
  if (text.length > bytes || Buffer.byteLength(text) > bytes) throw tooLarge(`is larger than ${bytes} bytes`)
  const lexer = new Lexer(new Source(text))
  // The depths are exact up to the first syntax error, and the parser stops there.
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
        // Braces inside parentheses belong to values, not to selections.
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
