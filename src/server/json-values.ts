/**
 * Whether the text of JSON has more values than this. It counts the characters that come before a value, outside of
 * strings. Parsing many small values takes much longer than parsing long strings.
 */
export function hasMoreValues(json: Buffer, most: number): boolean {
  if (json.length <= most) return false
  let values = 0
  let inString = false
  for (let at = 0; at < json.length; at++) {
    const character = json[at]
    if (character === quote) inString = !inString
    else if (inString) at += character === backslash ? 1 : 0
    else if (character === comma || character === bracket || character === brace) {
      if (++values > most) return true
    }
  }
  return false
}

const [quote, backslash, comma, bracket, brace] = Buffer.from('"\\,[{')
