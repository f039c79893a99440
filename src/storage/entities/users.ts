import { type Actor, anonymous, type IdentifiedUser, type Role } from '../../core/actor.ts'
import { type Condition, type Unmet, unconditional, unmet } from '../../core/condition.ts'
import type { Account, Credentials, Replaced, UserValues, WriteRefusal, WriteRights } from '../../core/store.ts'
import { loginKeyOf, nameKeyOf, profileFields, profileOf, type TokenState, type User } from '../../core/users/user.ts'
import { revisionOf } from '../revision.ts'
import { queued, type Row, recordOf, type Statement, sql, type Value } from '../sql.ts'
import type { Steps } from '../verb.ts'
import { revoked, unlessRevoked } from './actors.ts'
import { deleteSomeContent, releaseSomeRows } from './user-content.ts'
import { userColumns, userOf } from './user-lists.ts'

export const userVerbs = {
  createUser: (values: UserValues, actor: Actor = anonymous, role: Role = 'member') =>
    unlessRevoked(actor, createUser(values, role), 'token revoked' as const),

  replaceUser: (id: number, values: UserValues, rights: WriteRights, condition: Condition = unconditional) =>
    unlessRevoked(rights.actor, replaceUser(id, values, rights, condition), 'token revoked' as const),

  changeUser: (id: number, changes: Partial<UserValues>, rights: WriteRights, condition: Condition = unconditional) =>
    unlessRevoked(rights.actor, changeUser(id, changes, rights, condition), 'token revoked' as const),

  deleteUser: (id: number, actor: Actor, condition: Condition = unconditional) =>
    unlessRevoked(actor, deleteUser(id, condition), 'token revoked' as const),

  *revokeTokens({ id, tokenVersion: current }: IdentifiedUser, next: string): Steps<'revoked' | 'token revoked'> {
    const rows =
      yield sql`update users set token_mark = ${next} where id = ${id} and token_mark = ${current} returning 1`
    if (rows.length === 0) return 'token revoked'
    yield revoked(id)
    return 'revoked'
  },
}

function* createUser(values: UserValues, role: Role): Steps<User | 'email taken'> {
  for (;;) {
    yield queued(sql`update counters set next = next + 1 where name = 'users'`)
    const created = yield* insertUser(null, values, role)
    if (created !== 'id taken') return created
    // A client has chosen this id with PUT. Move the counter past the run of used ids to the next free one. If the
    // user with this id is gone by now, just try the next id: the next used id may be the largest possible one.
    yield sql`update counters set next = (
                select taken.id + 1 from users as taken
                where taken.id >= counters.next - 1 and not exists (select 1 from users where id = taken.id + 1)
                order by taken.id limit 1
              ) where name = 'users' and exists (select 1 from users where id = counters.next - 1)`
  }
}

function* replaceUser(
  id: number,
  values: UserValues,
  rights: WriteRights,
  condition: Condition,
): Steps<Replaced | 'creation refused' | Unmet | WriteRefusal> {
  for (;;) {
    const known = yield* lockUser(id)
    if (known === undefined && !rights.mayCreate) return 'creation refused'
    const refusal = unmet(condition, () => known && revisionOf.user(known.user))
    if (refusal !== undefined) return refusal
    if (known !== undefined) {
      const replaced = yield* updateUser(known, values, rights)
      return typeof replaced === 'string' ? replaced : { user: replaced, created: false }
    }
    const created = yield* insertUser(id, values, 'member')
    // If another transaction created the user meanwhile, the next pass finds it. The loop copes with any number of
    // others that create and delete the user.
    if (created !== 'id taken') return created === 'email taken' ? created : { user: created, created: true }
  }
}

function* changeUser(
  id: number,
  changes: Partial<UserValues>,
  rights: WriteRights,
  condition: Condition,
): Steps<User | 'absent' | Unmet | WriteRefusal> {
  const known = yield* lockUser(id)
  if (known === undefined) return 'absent'
  const refusal = unmet(condition, () => revisionOf.user(known.user))
  if (refusal !== undefined) return refusal
  return yield* updateUser(known, { ...known.user, password: null, tokenVersion: '', ...changes }, rights)
}

/** A user with much content is deleted in several transactions, so that other writes can run between them. */
function* deleteUser(id: number, condition: Condition): Steps<'gone' | 'more' | Unmet> {
  // The lock stops new posts and comments. They would be deleted with the user, posts without an event, and comments
  // without a change of the number that their post has.
  const known = yield* lockUser(id)
  if (known === undefined) return 'gone'
  const refusal = unmet(condition, () => revisionOf.user(known.user))
  if (refusal !== undefined) return refusal
  if ((yield* deleteSomeContent(id)) || (yield* releaseSomeRows(id))) return 'more'
  yield queued(sql`delete from users where id = ${id}`)
  yield revoked(id)
  return 'gone'
}

export const userReads = {
  byId: (id: number): Statement => ({ text: readById, values: [id] }),
  accounts: (after: number, limit: number) =>
    sql`select id, role, email, name, case when login_key is null then 0 else 1 end from users
        where id > ${after} order by id limit ${limit}`,
  tokenState: (id: number) => sql`select role, token_mark from users where id = ${id}`,
  credentials: (loginKey: string) =>
    sql`select role, token_mark, id, password_hash from users where login_key = ${loginKey}`,
}

const readById = `select ${userColumns.join(', ')} from users where id = $1`

export function tokenStateOf([role, tokenVersion]: Row): TokenState {
  return { role: role as Role, tokenVersion: String(tokenVersion) }
}

export const credentialsOf = recordOf<Credentials>('role', 'tokenVersion', 'id', 'passwordHash')

const identityOf = recordOf<Omit<Account, 'canLogIn'>>('id', 'role', 'email', 'name')

export function accountOf(row: Row): Account {
  return { ...identityOf(row), canLogIn: row[4] === 1 }
}

interface KnownUser {
  readonly user: User
  readonly hasPassword: boolean
}

const lockById = `select ${[...userColumns, 'login_key'].join(', ')} from users where id = $1 for update`

function* lockUser(id: number): Steps<KnownUser | undefined> {
  const [row] = yield { text: lockById, values: [id] }
  return row === undefined ? undefined : { user: userOf(row), hasPassword: row[userColumns.length] !== null }
}

const keyColumns = ['email_key', 'name_key', 'login_key']

/** Without an id, the user gets the one that the counter has just passed. */
function* insertUser(id: number | null, values: UserValues, role: Role): Steps<User | 'email taken' | 'id taken'> {
  const { name, email, password, tokenVersion } = values
  const emailKey = loginKeyOf(email)
  const loginKey = password === null ? null : emailKey
  const keys = [emailKey, nameKeyOf(name), loginKey]
  const profile = profileFields.map(field => values[field])
  const [created] = yield {
    text: insertion,
    values: [id, name, email, ...profile, ...keys, password?.hash ?? null, tokenVersion, role],
  }
  if (created !== undefined) return { id: Number(created[0]), name, email, ...profileOf(field => values[field]) }
  return (yield* isTaken(loginKey, id ?? 0)) ? 'email taken' : 'id taken'
}

const inserted = [...userColumns.slice(1), ...keyColumns, 'password_hash', 'token_mark', 'role']
const insertion = `insert into users (id, ${inserted.join(', ')}, created_at)
  values (coalesce($1, (select next - 1 from counters where name = 'users')),
          ${inserted.map((_, index) => `$${index + 2}`).join(', ')}, now_plus(0)) on conflict do nothing returning id`

function* updateUser(
  { user, hasPassword }: KnownUser,
  values: UserValues,
  rights: WriteRights,
): Steps<User | WriteRefusal> {
  const { id } = user
  const { name, email, password, tokenVersion } = values
  if (password !== null && hasPassword && !rights.mayChangePassword) return 'password protected'
  const emailKey = loginKeyOf(email)
  const loginKey = hasPassword || password !== null ? emailKey : null
  if (yield* isTaken(loginKey, id)) return 'email taken'
  const profile = profileFields.map(field => values[field])
  const secret = [password?.hash ?? null, password === null ? null : tokenVersion]
  yield queued({ text: update, values: [id, name, email, ...profile, emailKey, nameKeyOf(name), loginKey, ...secret] })
  if (password !== null) yield revoked(id)
  return { id, name, email, ...profileOf(field => values[field]) }
}

// One statement, since a login key and a password are there together or not at all.
const updated = [...userColumns.slice(1), ...keyColumns]
const update = `update users set ${updated.map((column, index) => `${column} = $${index + 2}`).join(', ')},
  password_hash = coalesce($${updated.length + 2}, password_hash), token_mark = coalesce($${updated.length + 3}, token_mark)
  where id = $1`

function* isTaken(loginKey: Value, except: number): Steps<boolean> {
  if (loginKey === null) return false
  const others = yield sql`select id from users where login_key = ${loginKey} and id <> ${except}`
  return others.length > 0
}
