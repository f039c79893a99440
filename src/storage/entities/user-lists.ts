import {
  loginKeyOf,
  type User,
  type UserList,
  type UserListRequest,
  type UserPart,
  userFields,
  usersTogether,
} from '../../core/users/user.ts'
import { Pace } from '../../lib/pace.ts'
import type { Engine } from '../engine.ts'
import type { Dialect } from '../select/dialect.ts'
import { pagesOf } from '../select/list.ts'
import { columnOf } from '../select/select.ts'
import { type Row, recordOf } from '../sql.ts'
import type { Verbs } from '../verb.ts'

/** All users, or those with an e-mail, by id. */
export function listOfUsers(engine: Pick<Engine<Verbs>, 'read' | 'dialect'>) {
  const statementOf = userPages(engine.dialect)
  return async (request: UserListRequest, own: boolean): Promise<UserList> => {
    const page = new UserPage(engine.dialect.name)
    for (let rest = request; ; ) {
      const limit = Math.min(usersTogether, request.limit - page.count)
      const rows = await engine.read({ ...statementOf({ ...rest, limit }), own })
      const more = page.add(rows, limit)
      const { parts, last } = page
      if (!more || last === undefined || page.count === request.limit) return { parts, last, more }
      await page.pace.rest()
      rest = { ...request, offset: 0, after: last }
    }
  }
}

/** The statements for parts of the list. */
export function userPages(dialect: Pick<Dialect, 'page' | 'name'>) {
  const users = { table: 'users', columns: userColumns, shown: listedColumns[dialect.name] }
  const all = pagesOf(dialect, users)
  const withEmail = pagesOf(dialect, { ...users, equal: [['email_key', '$3']] })
  return (request: UserListRequest) =>
    request.email === undefined ? all(request) : withEmail(request, loginKeyOf(request.email))
}

/** The JSON of each user begins with it. */
const start = '{"id":'
export const userColumns = userFields.map(columnOf)

/**
 * SQLite writes the JSON of all users of a part, and counts them: `concat` leaves null out, so fields that are not set are
 * missing. PostgreSQL returns the columns: it takes three times as long to quote a text as Node.
 */
export const listedColumns: Readonly<Record<Dialect['name'], string>> = {
  sqlite: `count(*), cast(group_concat(concat('${start}', id, ${userFields
    .slice(1)
    .map(field => [field, columnOf(field)])
    .map(([field, column]) => `',"${field}":' || iif(${column} is null, null, json_quote(${column}))`)
    .join(', ')}, '}')) as blob)`,
  postgres: userColumns.join(', '),
}

export const userOf = recordOf<User>(...userFields)

/** A page as it is read. A long one is read in parts, and others are served in between. */
export class UserPage {
  readonly parts: UserPart[] = []
  readonly pace = new Pace()
  count = 0
  last: number | undefined
  readonly #engine: Dialect['name']

  constructor(engine: Dialect['name']) {
    this.#engine = engine
  }

  /** Adds users that were read with at most one more than the limit. Returns whether there is one more. */
  add(rows: readonly Row[], limit: number): boolean {
    const { users, count, last, more } = partOf[this.#engine](rows, limit)
    if (count > 0) this.parts.push(users)
    this.count += count
    this.last = last
    return more
  }
}

interface Part {
  readonly users: UserPart
  readonly count: number
  readonly last: number | undefined
  readonly more: boolean
}

const partOf: Readonly<Record<Dialect['name'], (rows: readonly Row[], limit: number) => Part>> = {
  sqlite([row], limit) {
    const [found, json] = row as readonly [number, Uint8Array<ArrayBuffer> | null]
    if (json === null) return { users: [], count: 0, last: undefined, more: false }
    const bytes = Buffer.from(json.buffer)
    const more = found > limit
    // Within a text the quotes are escaped.
    const users = more ? json.subarray(0, bytes.lastIndexOf(`,${start}`)) : json
    const id = bytes.lastIndexOf(start, users.length) + start.length
    const last = Number.parseInt(bytes.toString('latin1', id, id + 16), 10)
    return { users, count: Math.min(found, limit), last, more }
  },
  postgres(rows, limit) {
    const users = rows.slice(0, limit).map(userOf)
    return { users, count: users.length, last: users.at(-1)?.id, more: rows.length > limit }
  },
}
