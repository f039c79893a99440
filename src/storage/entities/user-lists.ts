import type { ListedUser } from '../../core/store.ts'
import { loginKeyOf, profileFields, type User, type UserListRequest } from '../../core/users/user.ts'
import type { Dialect } from '../select/dialect.ts'
import { pagesOf } from '../select/list.ts'
import { columnOf } from '../select/select.ts'
import { type Row, recordOf } from '../sql.ts'

/** All users, or those with an e-mail, by id. */
export function listOfUsers(dialect: Pick<Dialect, 'page' | 'name'>) {
  const users = { table: 'users', columns: userColumns, shown: listedColumns[dialect.name] }
  const all = pagesOf(dialect, users)
  const withEmail = pagesOf(dialect, { ...users, equal: [['email_key', '$3']] })
  return (request: UserListRequest) =>
    request.email === undefined ? all(request) : withEmail(request, loginKeyOf(request.email))
}

const userFields = ['id', 'name', 'email', ...profileFields] as const
export const userColumns = userFields.map(columnOf)

/**
 * SQLite writes the JSON: `concat` leaves null out, so fields that are not set are missing. PostgreSQL returns the
 * columns: it takes three times as long to quote a text as Node.
 */
export const listedColumns: Readonly<Record<Dialect['name'], string>> = {
  sqlite: `id, cast(concat('{"id":', id, ${userFields
    .slice(1)
    .map(field => [field, columnOf(field)])
    .map(([field, column]) => `',"${field}":' || iif(${column} is null, null, json_quote(${column}))`)
    .join(', ')}, '}') as blob)`,
  postgres: userColumns.join(', '),
}

export const userOf = recordOf<User>(...userFields)
export const listedUserOf: Readonly<Record<Dialect['name'], (row: Row) => ListedUser>> = {
  sqlite: recordOf<{ id: number; json: Uint8Array }>('id', 'json'),
  postgres: userOf,
}
