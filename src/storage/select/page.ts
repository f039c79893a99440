/** One page of a list: at most `limit` rows, from the start of the page on. */
export type List = Rows & PageStart

interface Rows {
  readonly table: string
  /** The columns to select. The columns that the rows are sorted by are added. */
  readonly columns: Iterable<string>
  /** Columns and the expressions that they must equal. An index on these columns and `id` finds the rows. */
  readonly equal: readonly (readonly [column: string, value: string])[]
  /** Conditions on `published_at`. If there are any, the rows are sorted by `published_at`. */
  readonly published: readonly string[]
  readonly order: 'asc' | 'desc'
  /** A parameter, such as `$1`. */
  readonly limit: string
}

/** The parameter that says where a page starts: after so many rows, or after an id, whether or not a row has it. */
export type PageStart = { readonly offset: string } | { readonly after: string }

export interface Page {
  /** A select in parentheses. */
  readonly rows: string
  /** The columns that the rows are sorted by. */
  readonly sorting: readonly string[]
}

/**
 * SQLite skips rows on the index that finds them, and reads a table row only when it is selected. But a list without
 * conditions is read from the table itself, whose pages hold few rows, so skipping there is slow. For such a list a
 * narrow index (`posts_by_id`, `users_by_id`) finds the first row of the page, and the table is read from that row on.
 * With offset 0, this search is left out.
 */
export function sqlitePage(list: List): Page {
  const { table, equal, published, order, limit } = list
  const sorting = published.length > 0 ? ['published_at', 'id'] : ['id']
  const sorted = orderBy(sorting, order)
  const wanted = [...equal.map(([column, value]) => `${column} = ${value}`), ...published]
  const rows = (conditions: readonly string[], skipped = '') =>
    `(select ${columns(list, sorting)} from ${table}${where(conditions)} order by ${sorted} limit ${limit}${skipped})`
  if ('after' in list) return { rows: rows([...wanted, `id ${beyond[order]} ${list.after}`]), sorting }
  const { offset } = list
  if (wanted.length > 0) return { rows: rows(wanted, ` offset ${offset}`), sorting }
  const first = `(select id from ${table} order by ${sorted} limit 1 offset ${offset})`
  const start = `case when ${offset} = 0 then ${outermost[order]} else ${first} end`
  return { rows: rows([`id ${from[order]} ${start}`]), sorting }
}

/**
 * PostgreSQL reads every row that it skips from the table. So the first row of each page is found by an index-only
 * query. For a list with conditions, such as the rows of one owner, a generic plan may choose the index on ids and then
 * read all other rows too. So these rows are selected as a range of their index and sorted by all of its columns: no
 * other index has this order.
 */
export function postgresPage(list: List): Page {
  const { table, equal, published, order, limit } = list
  if (published.length > 0) return postgresByPublication(list)
  const named = equal.map(([column]) => column)
  const values = equal.map(([, value]) => value)
  const sorting = [...named, 'id']
  const sorted = orderBy(sorting, order)
  const range = (operator: string) =>
    equal.length === 0 ? [] : [`(${named.join(', ')}) ${operator} (${values.join(', ')})`]
  const selected = (columns: string, conditions: readonly string[]) =>
    `select ${columns} from ${table}${where(conditions)} order by ${sorted} limit`
  const begins = (operator: string, id: string) => `(${sorting.join(', ')}) ${operator} (${[...values, id].join(', ')})`
  // With offset 0 nothing is looked up.
  const begin =
    'after' in list
      ? begins(beyond[order], list.after)
      : begins(
          from[order],
          `case when ${list.offset}::bigint = 0 then ${outermost[order]}
           else (${selected('id', [...range('>='), ...range('<=')])} 1 offset ${list.offset}) end`,
        )
  return { rows: `(${selected(columns(list, sorting), [begin, ...range(to[order])])} ${limit})`, sorting }
}

function postgresByPublication(list: List): Page {
  // The id alone does not tell where a row is in this order, and the rows of one owner have no index for it.
  if ('after' in list || list.equal.length > 0) throw new Error('A list by publication has all rows, from an offset on')
  const { table, published, order, limit, offset } = list
  const sorting = ['published_at', 'id']
  const sorted = orderBy(sorting, order)
  const first = `select published_at, id from ${table}${where(published)} order by ${sorted} limit 1 offset ${offset}`
  const start = `(published_at, id) ${from[order]} ((select published_at from first), (select id from first))`
  const rows = `select ${columns(list, sorting)} from ${table}${where([...published, start])} order by ${sorted} limit ${limit}`
  return { rows: `(with first as materialized (${first}) ${rows})`, sorting }
}

/**
 * Operators: `from` for ids at or after a given one in this order, `beyond` for ids after it, `to` for ids at or before
 * it.
 */
const from = { asc: '>=', desc: '<=' } as const
const beyond = { asc: '>', desc: '<' } as const
const to = { asc: '<=', desc: '>=' } as const
/** An id that comes before all others in this order. */
const outermost = { asc: '0', desc: '9223372036854775807' } as const

function columns(list: Rows, sorting: readonly string[]): string {
  return [...new Set([...list.columns, ...sorting])].join(', ')
}

function where(conditions: readonly string[]): string {
  return conditions.length === 0 ? '' : ` where ${conditions.join(' and ')}`
}

/** `name` is that of the rows, if more than one table has these columns. */
export function orderBy(sorting: readonly string[], order: 'asc' | 'desc', name?: string): string {
  return sorting.map(column => `${name === undefined ? '' : `${name}.`}${column} ${order}`).join(', ')
}
