/**
 * Whether the parsed number has exactly the value that the JSON text has: a double turns `1.0000000000000001` into 1.
 * Doubles distinguish all decimals of up to 15 digits, so only longer ones are compared.
 */
export function isExact(json: string, field: string, value: number): boolean {
  return !longNumber.test(json) || sameDecimal(memberText(json, field), String(value))
}

const longNumber = /[\d.]{16}/

/** The text of a field of the outermost object. If it occurs more than once, the last counts, as in `JSON.parse`. */
export function memberText(json: string, name: string): string {
  let depth = 0
  let text = ''
  /** Whether the last string of the outermost object was this name. */
  let isNamed = false
  let at = 0
  while (at < json.length) {
    const character = json[at]
    let end = at + 1
    if (character === '"') {
      end = endOfString(json, at)
      if (depth === 1) isNamed = isName(json.slice(at, end), name)
    } else if (character === '{' || character === '[') depth++
    else if (character === '}' || character === ']') depth--
    else if (character === ':' && depth === 1 && isNamed) {
      end = endOfScalar(json, end)
      text = json.slice(at + 1, end).trim()
    }
    at = end
  }
  return text
}

/** A name has at most six characters for each of its own, where all are escaped. */
function isName(quoted: string, name: string): boolean {
  if (quoted.length > 6 * name.length + 2) return false
  return quoted.includes('\\') ? JSON.parse(quoted) === name : quoted === `"${name}"`
}

function endOfString(json: string, start: number): number {
  let at = start + 1
  while (json[at] !== '"') at += json[at] === '\\' ? 2 : 1
  return at + 1
}

function endOfScalar(json: string, start: number): number {
  let at = start
  while (!'"{[,}'.includes(json[at] ?? '}')) at++
  return at
}

/** Whether two JSON numbers have the same decimal value. */
export function sameDecimal(one: string, other: string): boolean {
  const [a, b] = [decimalOf(one), decimalOf(other)]
  return a !== undefined && b !== undefined && a.digits === b.digits && a.exponent === b.exponent
}

interface Decimal {
  /** With its sign, without leading and trailing zeros. */
  readonly digits: string
  readonly exponent: number
}

function decimalOf(text: string): Decimal | undefined {
  const [, sign = '', whole = '', fraction = '', power = '0'] = numeral.exec(text) ?? []
  const all = whole + fraction
  let start = 0
  let end = all.length
  while (all[start] === '0') start++
  if (start === end) return whole === '' ? undefined : { digits: '0', exponent: 0 }
  while (all[end - 1] === '0') end--
  const exponent = Number(power) - fraction.length + (all.length - end)
  return { digits: sign + all.slice(start, end), exponent }
}

const numeral = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/
