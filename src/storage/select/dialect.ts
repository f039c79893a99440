import type { Field } from '../../core/entities.ts'
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
  value(column: string, field: Field): string
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
   * The statement that returns one answer, as a text or as its bytes. It fails or returns null if the answer is over the
   * size limit.
   */
  statement(answer: string): string
}

/** Long texts of up to this many bytes are not counted: a thousand of them stay far below the size limit. */
const uncounted = 512

/** In bytes. For shorter ones the memory of bytes would take longer than is gained. */
const longAnswer = 131_072

export const sqliteDialect: Dialect = {
  name: 'sqlite',
  emptyList: 'json_array()',
  joins: true,
  // An id is a number in the database and a string in the API. For `count_text` see `SqliteConnection`.
  value: (column, { type, long }) => {
    if (long)
      return `iif(octet_length(${column}) <= ${uncounted} or count_text(octet_length(${column})), ${column}, '')`
    return type === 'id' ? `cast(${column} as text)` : column
  },
  text: text => `'${text}'`,
  json: parameter => `json(${parameter})`,
  object: sqliteObject,
  one: (pairs, from) => `(select ${sqliteObject(pairs)} from ${from})`,
  page: sqlitePage,
  // Rows arrive in the order of their page: the page is sorted and cut inside, and joins keep its order (`cross join`).
  many: (pairs, from) => `(select json_group_array(${sqliteObject(pairs)}) from ${from})`,
  // The connection limits the length of any text. V8 takes five times as long as Node to make a long text of its bytes, if
  // it is not in Latin script.
  statement: answer =>
    `select iif(octet_length(answer) > ${longAnswer}, cast(answer as blob), answer) from (select ${answer} as answer)`,
}

/** An SQLite function takes at most 1,000 arguments. A document of 1,000 tokens has fewer than 500 keys in an object. */
function sqliteObject(pairs: readonly Pair[]): string {
  return `json_object(${pairs.map(([key, value]) => `'${key}', ${value}`).join(', ')})`
}

/**
 * The JSON is text from the start. Functions that build a value of the type `json` or `jsonb` are no faster, and engines
 * that resemble PostgreSQL do not keep the order of keys in it. To-one relations are looked up by subqueries: a generic
 * plan does not know the limit, so with a join it would read the whole related table.
 */
export const postgresDialect: Dialect = {
  name: 'postgres',
  emptyList: `'[]'`,
  joins: false,
  value: (column, { type, optional, long }) => {
    const json = postgresValue[type](column)
    if (long) return `case when octet_length(${column}) <= ${uncounted} then ${json} else ${counted(column)} end`
    return optional ? `coalesce(${json}, 'null')` : json
  },
  text: text => `'"${text}"'`,
  json: parameter => `${parameter}::text`,
  object: postgresObject,
  one: (pairs, from) => `coalesce((select ${postgresObject(pairs)} from ${from}), 'null')`,
  page: postgresPage,
  many: (pairs, from, order) =>
    `'[' || coalesce((select string_agg(o.item, ',') from (select ${postgresObject(pairs)} as item from ${from} order by ${order}) as o), '') || ']'`,
  // `offset 0` keeps the planner from putting the answer into both places, where it would run twice.
  statement: answer => {
    const andLeft = answer.includes(bytesLeft) ? ` and ${bytesLeft} not like '-%'` : ''
    return `select case when octet_length(answer) <= ${bounds.answerBytes}${andLeft} then answer end from (select ${answer} as answer offset 0) as whole`
  },
}

/** How many bytes the answers of this transaction have left, as far as long texts are counted; empty before the first. */
const bytesLeft = `coalesce(current_setting('duet.left', true), '')`

/**
 * For the function see the migration `counted-texts`. Its second argument is what is left before the first text, and the
 * length of the blanks that it puts into an answer that is too long. Only a first text needs them, because the statement
 * asks for the bytes that are left. After other texts, blanks would be copied with all that is joined to them: a refused
 * answer would take PostgreSQL 1.6 times as long.
 */
function counted(column: string): string {
  return `counted_json(${column}, case ${bytesLeft} when '' then ${bounds.answerBytes} else 0 end)`
}

/** An instant contains nothing that JSON must escape. */
const postgresValue: Readonly<Record<Field['type'], (column: string) => string>> = {
  id: column => `'"' || ${column}::text || '"'`,
  text: column => `to_json(${column})::text`,
  integer: column => `${column}::text`,
  instant: column => `'"' || ${column} || '"'`,
}

function postgresObject(pairs: readonly Pair[]): string {
  const terms: string[] = []
  let literal = '{'
  for (const [index, [key, value]] of pairs.entries()) {
    const [, open = '', inner = value, close = ''] = framed.exec(value) ?? []
    terms.push(`'${literal}${index === 0 ? '' : ','}"${key}":${open}'`, inner)
    literal = close
  }
  return `(${treeOf([...terms, `'${literal}}'`])})`
}

/**
 * A text between two characters: an id in quotes, or a list in brackets. An object writes them into the literals of its
 * keys instead of joining them to the text, because each `||` copies all that it joins. So a nested list takes a seventh
 * less CPU of the database, and the largest answers a fifth less.
 */
const framed = /^'(.)' \|\| (.*) \|\| '(.)'$/s

/** Joins texts as a balanced tree. Engines limit the depth of expressions, and `a || b || c` nests one level per term. */
function treeOf(terms: readonly string[]): string {
  if (terms.length <= 2) return terms.join(' || ')
  const half = terms.length >> 1
  return `(${treeOf(terms.slice(0, half))}) || (${treeOf(terms.slice(half))})`
}
