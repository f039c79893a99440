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
   * The same statement, but it returns null if the text is over the size limit. Not needed where the engine itself
   * refuses to build such a text.
   */
  bounded(statement: string): string
  /** How many long texts a statement may return without a guard. */
  readonly unguardedTexts: number
  /** The same as what `compile` makes, but it ends early if the long texts are over the size limit together. */
  guarded(compile: (dialect: Dialect) => string): string
  /**
   * For reads on the way of ordinary ones: it leaves long texts out that have more bytes than a parameter says, and
   * marks the answer with `leftOut`. Undefined where the engine itself stops such a read.
   */
  readonly limited: ((longest: string) => Dialect) | undefined
}

/** Stands in an answer for a text that was left out. JSON contains no such character. */
export const leftOut = '\u0001'

export const sqliteDialect: Dialect = {
  name: 'sqlite',
  emptyList: 'json_array()',
  joins: true,
  // An id is a number in the database and a string in the API. For the functions see `SqliteConnection`.
  value: (column, { type, long }) => {
    if (long) return `iif(octet_length(${column}) > longest_text(), text_too_long(), ${column})`
    return type === 'id' ? `cast(${column} as text)` : column
  },
  text: text => `'${text}'`,
  json: parameter => `json(${parameter})`,
  object: sqliteObject,
  one: (pairs, from) => `(select ${sqliteObject(pairs)} from ${from})`,
  page: sqlitePage,
  // Rows arrive in the order of their page: the page is sorted and cut inside, and joins keep its order (`cross join`).
  many: (pairs, from) => `(select json_group_array(${sqliteObject(pairs)}) from ${from})`,
  bounded: statement => statement,
  unguardedTexts: 128,
  guarded: compile =>
    `select case when (${compile(measuring(sqliteDialect))}) <= ${bounds.answerBytes} then (${compile(sqliteDialect)}) end`,
  limited: undefined,
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
 * The JSON is text from the start. Functions that build a value of the type `json` or `jsonb` are no faster, and engines
 * that resemble PostgreSQL do not keep the order of keys in it. To-one relations are looked up by subqueries: a generic
 * plan does not know the limit, so with a join it would read the whole related table.
 */
export const postgresDialect: Dialect = {
  name: 'postgres',
  emptyList: `'[]'`,
  joins: false,
  value: (column, { type, optional }) => {
    const json = postgresValue[type](column)
    return optional ? `coalesce(${json}, 'null')` : json
  },
  text: text => `'"${text}"'`,
  json: parameter => `${parameter}::text`,
  object: postgresObject,
  one: (pairs, from) => `coalesce((select ${postgresObject(pairs)} from ${from}), 'null')`,
  page: postgresPage,
  many: (pairs, from, order) =>
    `(select '[' || coalesce(string_agg(o.item, ','), '') || ']' from (select ${postgresObject(pairs)} as item from ${from} order by ${order}) as o)`,
  // `offset 0` keeps the planner from putting the statement into both places, where it would run twice.
  bounded: statement =>
    `select case when octet_length(answer) <= ${bounds.answerBytes} then answer end from (select (${statement}) as answer offset 0) as whole`,
  unguardedTexts: 50,
  guarded: compile =>
    `select case when set_config('duet.left', '${bounds.answerBytes}', true) <> '' then (${compile(counting)}) end`,
  limited: longest => ({
    ...postgresDialect,
    value: (column, field) =>
      field.long
        ? `case when octet_length(${column}) > ${longest} then E'\\x01' else to_json(${column})::text end`
        : postgresDialect.value(column, field),
  }),
}

/**
 * Counts the bytes of long texts in a setting of the transaction, and writes no further ones when the limit is reached:
 * a text of quotes takes PostgreSQL four times as long as one of letters, so those that are refused in the end must
 * not be written first. Each text costs three microseconds more.
 */
const counting: Dialect = {
  ...postgresDialect,
  value: (column, field) =>
    field.long
      ? `(select j from (select case when ${left} >= 0 then to_json(${column})::text else '' end as j offset 0) as j where set_config('duet.left', (${left} - octet_length(j))::text, true) <> '')`
      : postgresDialect.value(column, field),
}

const left = "current_setting('duet.left')::int"

/** An instant contains nothing that JSON must escape. */
const postgresValue: Readonly<Record<Field['type'], (column: string) => string>> = {
  id: column => `'"' || ${column} || '"'`,
  text: column => `to_json(${column})::text`,
  integer: column => `${column}::text`,
  instant: column => `'"' || ${column} || '"'`,
}

function postgresObject(pairs: readonly Pair[]): string {
  const members = pairs.map(([key, value], index) => `'${index === 0 ? '{' : ','}"${key}":' || ${value}`)
  return `(${treeOf(members.length === 0 ? ["'{'"] : members, '||')} || '}')`
}

/**
 * A dialect that computes the bytes of the long texts in an answer instead of the JSON. The size of an answer depends
 * mostly on them.
 */
function measuring(dialect: Dialect): Dialect {
  const sum = (pairs: readonly Pair[]) => sumOf(pairs.map(([, value]) => value).filter(value => value !== '0'))
  return {
    ...dialect,
    emptyList: '0',
    value: (column, { long }) => (long ? `octet_length(${column})` : '0'),
    text: () => '0',
    json: () => '0',
    object: sum,
    one: (pairs, from) => (sum(pairs) === '0' ? '0' : `coalesce((select ${sum(pairs)} from ${from}), 0)`),
    many: (pairs, from) => (sum(pairs) === '0' ? '0' : `(select coalesce(sum(${sum(pairs)}), 0) from ${from})`),
  }
}

function sumOf(terms: readonly string[]): string {
  return treeOf(terms, '+') || '0'
}

/** Terms joined as a balanced tree. Engines limit the depth of expressions, and `a + b + c` nests one level per term. */
function treeOf(terms: readonly string[], operator: '+' | '||'): string {
  if (terms.length <= 2) return terms.join(` ${operator} `)
  const half = terms.length >> 1
  return `(${treeOf(terms.slice(0, half), operator)}) ${operator} (${treeOf(terms.slice(half), operator)})`
}
