import { type Row, type Statement, sql } from '../sql.ts'

/**
 * Planner settings. Statements get one generic plan, which does not know the value of a limit. PostgreSQL then assumes
 * that the limit is a tenth of the table. With the default settings it would make a new plan for each use, or read and
 * sort whole tables. Each of our statements can find its rows in order by an index.
 */
export const planning = {
  plan_cache_mode: 'force_generic_plan',
  enable_seqscan: 'off',
  enable_sort: 'off',
  max_parallel_workers_per_gather: '0',
  jit: 'off',
} as const

/** The statements that give the role of this connection the planner settings that it lacks. */
export async function missingSettings(
  read: (statement: Statement) => Promise<readonly Row[]>,
): Promise<readonly string[]> {
  const missing: string[] = []
  for (const [name, value] of Object.entries(planning)) {
    const [row] = await read(sql`select current_setting(${name}), quote_ident(current_user)`)
    if (row?.[0] !== value) missing.push(`alter role ${row?.[1]} set ${name} = ${value}`)
  }
  return missing
}
