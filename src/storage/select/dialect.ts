import { bounds } from '../bounds.ts'
import { type List, type Page, postgresPage, sqlitePage } from './page.ts'

/** A key of a JSON object, and the SQL expression of its value. */
export type Pair = readonly [key: string, value: string]

/** How an engine builds JSON in SQL. Contains only the differences between the engines. */
export interface Dialect {
  readonly name: 'sqlite' | 'postgres'
  readonly emptyList: string
  /** Whether to-one relations are joined to their parent rows. Otherwise a subquery looks each of them up. */
  readonly joins: boolean
  id(column: string): string
  value(column: string): string
  longText(column: string): string
  text(text: string): string
  /** JSON that is passed as a parameter. */
  json(parameter: string): string
  object(pairs: readonly Pair[]): string
  /** An object made of the only row, or null if there is none. */
  one(pairs: readonly Pair[], from: string): string
  /** The rows of one page of a list. Rows before the page are skipped on an index. */
  page(list: List): Page
  /** A list of objects, one for each row, in the given order. */
  many(pairs: readonly Pair[], from: string, order: string): string
  /**
   * The same statement, but it returns null if the text is over the size limit. Not needed where the engine itself
   * refuses to build such a text.
   */
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
  // Rows arrive in the order of their page: the page is sorted and cut inside, and joins keep its order (`cross join`).
  many: (pairs, from) => `(select json_group_array(${sqliteObject(pairs)}) from ${from})`,
  bounded: statement => statement,
}

// An SQLite function takes at most 1000 arguments. `json_set` adds further pairs to the object of the first ones.
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
 * `row_to_json` writes compact JSON of any number of fields, and `json` keeps their order. To-one relations are looked
 * up by subqueries: a generic plan does not know the limit, so with a join it would read the whole related table.
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

// Column names become the keys, but PostgreSQL truncates names to 63 bytes.
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
  // An array joins the parts. A chain of `||` would nest the expression too deeply.
  const parts = pairs.map(([key], index) => `'"${key}":' || coalesce(to_json(o.c${index})::text, 'null')`)
  return `('{' || array_to_string(array[${parts.join(', ')}], ',') || '}')::json`
}

function fits(pairs: readonly Pair[]): boolean {
  return pairs.every(([key]) => key.length <= longestName)
}

/**
 * A dialect that computes the bytes of the long texts in an answer instead of the JSON. The size of an answer depends
 * mostly on them.
 */
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

/** A sum as a balanced tree. Engines limit the depth of expressions, and `a + b + c` nests one level per term. */
function sumOf(terms: readonly string[]): string {
  if (terms.length <= 2) return terms.join(' + ') || '0'
  const half = terms.length >> 1
  return `(${sumOf(terms.slice(0, half))}) + (${sumOf(terms.slice(half))})`
}
