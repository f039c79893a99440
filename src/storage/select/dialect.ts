import { bounds } from '../engine.ts'
import { type List, type Page, postgresPage, sqlitePage } from './page.ts'

/** A key of a JSON object and the expression of its value. */
export type Pair = readonly [key: string, value: string]

/** How the engines build JSON: where they differ, and nothing else. */
export interface Dialect {
  readonly name: 'sqlite' | 'postgres'
  readonly emptyList: string
  /** Whether to-one relations are joined to the rows they belong to, or looked up for each of them. */
  readonly joins: boolean
  id(column: string): string
  value(column: string): string
  longText(column: string): string
  text(text: string): string
  /** JSON that comes in as a parameter. */
  json(parameter: string): string
  object(pairs: readonly Pair[]): string
  /** An object of the one row that there is, or null. */
  one(pairs: readonly Pair[], from: string): string
  /** The rows of a part of a list, which they are skipped to over an index. */
  page(list: List): Page
  /** A list of objects of the rows, in this order. */
  many(pairs: readonly Pair[], from: string, order: string): string
  /** The same statement, giving null instead of a text beyond the bound, unless the engine itself refuses to build it. */
  bounded(statement: string): string
}

export const sqliteDialect: Dialect = {
  name: 'sqlite',
  emptyList: 'json_array()',
  joins: true,
  id: column => `cast(${column} as text)`,
  value: column => column,
  longText: column => column,
  text: text => `'${text}'`,
  json: parameter => `json(${parameter})`,
  object: sqliteObject,
  one: (pairs, from) => `(select ${sqliteObject(pairs)} from ${from})`,
  page: sqlitePage,
  // Rows come in the order of the page that they are made of: it is cut there, and joins keep it (`cross join`).
  many: (pairs, from) => `(select json_group_array(${sqliteObject(pairs)}) from ${from})`,
  bounded: statement => statement,
}

// A function takes a thousand arguments at most; further pairs are set on the object of the first ones.
const sqlitePairs = 499

function sqliteObject(pairs: readonly Pair[]): string {
  const first = pairs.slice(0, sqlitePairs).map(([key, value]) => `'${key}', ${value}`)
  let object = `json_object(${first.join(', ')})`
  for (let from = sqlitePairs; from < pairs.length; from += sqlitePairs) {
    const next = pairs.slice(from, from + sqlitePairs).map(([key, value]) => `'$.${key}', ${value}`)
    object = `json_set(${object}, ${next.join(', ')})`
  }
  return object
}

/**
 * `row_to_json` writes compact JSON of any number of fields, and `json` keeps their order. To-one relations are looked up:
 * joined, a plan that does not know the limit takes a whole table for them.
 */
export const postgresDialect: Dialect = {
  name: 'postgres',
  emptyList: `'[]'::json`,
  joins: false,
  id: column => `${column}::text`,
  value: column => column,
  longText: column => column,
  text: text => `'${text}'::text`,
  json: parameter => `${parameter}::json`,
  object: pairs => postgresRow(pairs, ''),
  one: (pairs, from) => postgresRow(pairs, ` from ${from}`),
  page: postgresPage,
  many: (pairs, from, order) =>
    `(select coalesce(json_agg(${postgresMade(pairs)}), '[]'::json) from (${postgresSelect(pairs, ` from ${from} order by ${order}`)}) as o)`,
  bounded: statement =>
    `select case when octet_length(answer) <= ${bounds.answerBytes} then answer end from (select (${statement})::text as answer) as whole`,
}

// The names of columns become the keys, but PostgreSQL cuts names at 63 bytes.
const longestName = 63

function postgresRow(pairs: readonly Pair[], from: string): string {
  return `(select ${postgresMade(pairs)} from (${postgresSelect(pairs, from)}) as o)`
}

function postgresSelect(pairs: readonly Pair[], from: string): string {
  const short = fits(pairs)
  return `select ${pairs.map(([key, value], index) => `${value} as "${short ? key : `c${index}`}"`).join(', ')}${from}`
}

function postgresMade(pairs: readonly Pair[]): string {
  if (fits(pairs)) return 'row_to_json(o.*)'
  // Put together by an array and not by one `||` after the other, which would nest too deep.
  const parts = pairs.map(([key], index) => `'"${key}":' || coalesce(to_json(o.c${index})::text, 'null')`)
  return `('{' || array_to_string(array[${parts.join(', ')}], ',') || '}')::json`
}

function fits(pairs: readonly Pair[]): boolean {
  return pairs.every(([key]) => key.length <= longestName)
}

/** Instead of the JSON, how many bytes its long texts have: what an answer's size depends on. */
export function measuring({ joins, bounded, name, page }: Dialect): Dialect {
  const sum = (pairs: readonly Pair[]) => sumOf(pairs.map(([, value]) => value).filter(value => value !== '0'))
  return {
    name,
    joins,
    bounded,
    page,
    emptyList: '0',
    id: () => '0',
    value: () => '0',
    longText: column => `octet_length(${column})`,
    text: () => '0',
    json: () => '0',
    object: sum,
    one: (pairs, from) => (sum(pairs) === '0' ? '0' : `coalesce((select ${sum(pairs)} from ${from}), 0)`),
    many: (pairs, from) => (sum(pairs) === '0' ? '0' : `(select coalesce(sum(${sum(pairs)}), 0) from ${from})`),
  }
}

/** A sum whose halves are sums: engines bound how deep an expression nests, and `a + b + c` nests once for each term. */
function sumOf(terms: readonly string[]): string {
  if (terms.length <= 2) return terms.join(' + ') || '0'
  const half = terms.length >> 1
  return `(${sumOf(terms.slice(0, half))}) + (${sumOf(terms.slice(half))})`
}
