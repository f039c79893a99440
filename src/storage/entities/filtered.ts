import type { Dialect } from '../select/dialect.ts'
import type { Page } from '../select/page.ts'

/**
 * The rows of a list by id that have the given values and an id above `after`, without the first `offset` of them. They
 * are found by an index on the columns of these values and `id`.
 */
export interface Filtered {
  readonly table: string
  readonly columns: readonly string[]
  /** Columns, and the parameters that they must equal. */
  readonly equal: readonly (readonly [column: string, parameter: string])[]
  /** Parameters. */
  readonly after: string
  readonly limit: string
  readonly offset: string
}

export function filtered(list: Filtered, engine: Dialect['name']): Page {
  return engine === 'sqlite' ? sqliteFiltered(list) : postgresFiltered(list)
}

function sqliteFiltered({ table, columns, equal, after, limit, offset }: Filtered): Page {
  const wanted = [...equal.map(([column, value]) => `${column} = ${value}`), `id > ${after}`]
  const rows = `(select ${columns.join(', ')} from ${table} where ${wanted.join(' and ')}
                 order by id limit ${limit} offset ${offset})`
  return { rows, sorting: ['id'] }
}

/**
 * As in `postgresPage`: the wanted rows are a range of the index and sorted like it, so that no generic plan can choose
 * another index, and rows are skipped on the index alone.
 */
function postgresFiltered({ table, columns, equal, after, limit, offset }: Filtered): Page {
  const sorting = [...equal.map(([column]) => column), 'id']
  const values = equal.map(([, value]) => value)
  const from = (id: string) => `(${sorting.join(', ')}) > (${[...values, id].join(', ')})`
  const to = equal.map(([column]) => column).join(', ')
  const end = equal.length === 0 ? '' : ` and (${to}) <= (${values.join(', ')})`
  const order = `order by ${sorting.join(', ')}`
  const first = `select id from ${table} where ${from(`${after}::bigint`)}${end} ${order} limit 1 offset ${offset}`
  const start = `case when ${offset}::bigint = 0 then ${after}::bigint else (${first}) - 1 end`
  const selected = [...new Set([...columns, ...sorting])].join(', ')
  const rows = `(select ${selected} from ${table} where ${from(start)}${end} ${order} limit ${limit})`
  return { rows, sorting }
}
