/**
 * Whether a number that was read from JSON is the one that was written: of `1.0000000000000001` a double keeps 1. All
 * decimals of up to 15 digits are told apart by doubles, so only longer ones are looked at.
 */
export function isExact(json: string, field: string, value: number): boolean {
  return !longNumber.test(json) || sameDecimal(memberText(json, field), String(value))
}

const longNumber = /[\d.]{16}/

/** The text of a member of the outermost object, of the last one if there are several, as `JSON.parse` has it. */
export function memberText(json: string, name: string): string {
  let depth = 0
  let text = ''
  /** Of the member of the outermost object that is being read, however deep its value goes. */
  let key = ''
  let at = 0
  while (at < json.length) {
    const character = json[at]
    let end = at + 1
    if (character === '"') {
      end = endOfString(json, at)
      if (depth === 1) key = json.slice(at, end)
    } else if (character === '{' || character === '[') depth++
    else if (character === '}' || character === ']') depth--
    else if (character === ':' && isName(key, name)) {
      end = endOfScalar(json, end)
      text = json.slice(at + 1, end).trim()
    }
    at = end
  }
  return text
}

function isName(quoted: string, name: string): boolean {
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

/** Whether two numbers as JSON writes them have the same value, in decimal arithmetic. */
export function sameDecimal(one: string, other: string): boolean {
  const [a, b] = [decimalOf(one), decimalOf(other)]
  return a !== undefined && b !== undefined && a.digits === b.digits && a.exponent === b.exponent
}

interface Decimal {
  /** With its sign, without zeros at either end. */
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
