/** A page of a list: the rows that are left after `offset` of them, `limit` at most. */
export interface List {
  readonly table: string
  /** Columns that are wanted beside those that the rows are sorted by. */
  readonly columns: Iterable<string>
  /** The column that names the owner of a row, and the expression of the owner's id. Without it all rows are listed. */
  readonly owner: readonly [column: string, id: string] | undefined
  /** Conditions on `published_at`. Where there are any, rows are sorted by it. */
  readonly published: readonly string[]
  readonly order: 'asc' | 'desc'
  /** Parameters, such as `$1`. */
  readonly limit: string
  readonly offset: string
}

export interface Page {
  /** A select in parentheses. */
  readonly rows: string
  /** The columns of these rows that they are sorted by. */
  readonly sorting: readonly string[]
}

/**
 * SQLite skips on the index that it finds rows by and looks up a row only when it is wanted. But a list of a whole table
 * is found in the table itself, whose pages hold few rows: there the first row of the page is looked for in a narrow
 * index (`posts_by_id`, `users_by_id`), and the rest is read from that row on. Nothing is looked for where nothing is
 * skipped.
 */
export function sqlitePage(list: List): Page {
  const { table, owner, published, order, limit, offset } = list
  const sorting = published.length > 0 ? ['published_at', 'id'] : ['id']
  const sorted = orderBy(sorting, order)
  const wanted = [...(owner === undefined ? [] : [`${owner[0]} = ${owner[1]}`]), ...published]
  const selected = `select ${columns(list, sorting)} from ${table}`
  if (wanted.length > 0) {
    return { rows: `(${selected}${where(wanted)} order by ${sorted} limit ${limit} offset ${offset})`, sorting }
  }
  const first = `(select id from ${table} order by ${sorted} limit 1 offset ${offset})`
  const start = `case when ${offset} = 0 then ${outermost[order]} else ${first} end`
  return { rows: `(${selected} where id ${from[order]} ${start} order by ${sorted} limit ${limit})`, sorting }
}

/**
 * PostgreSQL looks up every row that it skips, so the first row of every page is looked for in the index alone. Its
 * generic plans take the index of ids for a list of few owners, and read all rows of all others. So an owner's rows are
 * a range of the index (owner, id), and sorted by both columns: no other index has them in this order.
 */
export function postgresPage(list: List): Page {
  const { table, owner, published, order, limit, offset } = list
  if (published.length > 0) return postgresByPublication(list)
  const sorting = owner === undefined ? ['id'] : [owner[0], 'id']
  const sorted = orderBy(sorting, order)
  const range = owner === undefined ? [] : [`${owner[0]} >= ${owner[1]}`, `${owner[0]} <= ${owner[1]}`]
  const first = `(select id from ${table}${where(range)} order by ${sorted} limit 1 offset ${offset})`
  const start = `case when ${offset}::bigint = 0 then ${outermost[order]} else ${first} end`
  const wanted =
    owner === undefined
      ? [`id ${from[order]} ${start}`]
      : [`(${owner[0]}, id) ${from[order]} (${owner[1]}, ${start})`, `${owner[0]} ${to[order]} ${owner[1]}`]
  return {
    rows: `(select ${columns(list, sorting)} from ${table}${where(wanted)} order by ${sorted} limit ${limit})`,
    sorting,
  }
}

function postgresByPublication(list: List): Page {
  const { table, owner, published, order, limit, offset } = list
  if (owner !== undefined) throw new Error('No index has the rows of an owner by their publication')
  const sorting = ['published_at', 'id']
  const sorted = orderBy(sorting, order)
  const first = `select published_at, id from ${table}${where(published)} order by ${sorted} limit 1 offset ${offset}`
  const start = `(published_at, id) ${from[order]} ((select published_at from first), (select id from first))`
  const rows = `select ${columns(list, sorting)} from ${table}${where([...published, start])} order by ${sorted} limit ${limit}`
  return { rows: `(with first as materialized (${first}) ${rows})`, sorting }
}

/** What an id is compared by to come at or after another one in this order, or at or before it. */
const from = { asc: '>=', desc: '<=' } as const
const to = { asc: '<=', desc: '>=' } as const
/** An id that comes before all others in this order. */
const outermost = { asc: '0', desc: '9223372036854775807' } as const

function columns(list: List, sorting: readonly string[]): string {
  return [...new Set([...list.columns, ...sorting])].join(', ')
}

function where(conditions: readonly string[]): string {
  return conditions.length === 0 ? '' : ` where ${conditions.join(' and ')}`
}

function orderBy(sorting: readonly string[], order: 'asc' | 'desc'): string {
  return sorting.map(column => `${column} ${order}`).join(', ')
}
