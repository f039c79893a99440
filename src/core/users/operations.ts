import { waited, waiting } from '../../lib/waits.ts'
import { type Access, invalidToken, notPermitted } from '../access.ts'
import type { Actor, Role } from '../actor.ts'
import { type Condition, type Revised, type Unmet, unconditional, unmetCondition } from '../condition.ts'
import { AppError, present, unavailable } from '../errors.ts'
import type { EventBus } from '../events.ts'
import { badInput, type Decode } from '../input.ts'
import type { Passwords, Randomness } from '../ports.ts'
import { Queue } from '../queue.ts'
import type { Replaced, UserStore, UserValues, WriteRefusal, WriteRights } from '../store.ts'
import {
  absentUser,
  profileOf,
  type User,
  type UserInput,
  type UserList,
  type UserListRequest,
  type UserPart,
  usersTogether,
} from './user.ts'

export interface UsersParts {
  readonly store: UserStore
  readonly access: Access
  readonly passwords: Passwords
  readonly randomness: Randomness
  readonly bus: EventBus
}

/** Operations on users. An id that no row can have is passed as `undefined` and counts as absent. */
export class Users {
  readonly #parts: UsersParts
  /** Each may have 4 MB before it is sent. */
  readonly #longPages = new Queue({ atOnce: 1 })

  constructor(parts: UsersParts) {
    this.#parts = parts
  }

  /** A long page is read and written while no other one is. Only its first part tells whether it is long. */
  async list<Written>(
    actor: Actor,
    decode: Decode<UserListRequest>,
    write: (parts: readonly UserPart[]) => Promise<Written>,
  ): Promise<UserListRequest & Omit<UserList, 'parts'> & { readonly written: Written }> {
    this.#parts.access.require(actor, 'list users')
    const request = decode()
    const written = async ({ parts, ...rest }: UserList) => ({ ...request, ...rest, written: await write(parts) })
    const limit = Math.min(request.limit, usersTogether)
    const isShort = ({ more }: UserList) => !more || limit === request.limit
    const readFirst = () => this.#parts.store.listUsers({ ...request, limit }, limit < request.limit)
    const first = await readFirst()
    if (isShort(first)) return written(first)
    const kept = this.#longPages.isIdle ? first : undefined // the first parts of all that wait would take too much memory
    const asked = performance.now()
    return this.#longPages.run(async () => {
      waited('queue', asked)
      if (performance.now() - asked > longestWaitMs) throw unavailable(new Error('Too many long pages wait'))
      const start = kept ?? (await readFirst())
      if (isShort(start) || start.last === undefined) return written(start)
      const following = { ...request, limit: request.limit - limit, offset: 0, after: start.last }
      const rest = await this.#parts.store.listUsers(following, true)
      return written({ ...rest, parts: [...start.parts, ...rest.parts] })
    })
  }

  async read(actor: Actor, id: number | undefined): Promise<Revised<User>> {
    this.#parts.access.require(actor, 'read a user', id)
    return present(id === undefined ? undefined : await this.#parts.store.readUser(id), absentUser)
  }

  async readSelf(actor: Actor): Promise<Revised<User>> {
    this.#parts.access.require(actor, 'read oneself')
    if (actor.kind === 'anonymous') throw notPermitted(actor)
    return present(await this.#parts.store.readUser(actor.id), absentUser)
  }

  async create(actor: Actor, decode: Decode<UserInput>): Promise<User> {
    this.#parts.access.require(actor, 'create a user')
    return accepted(actor, await this.#parts.store.createUser(await this.#valuesOf(decode()), actor))
  }

  async replace(
    actor: Actor,
    id: number | undefined,
    decode: Decode<UserInput>,
    decodeCondition: Decode<Condition>,
  ): Promise<Replaced> {
    this.#parts.access.require(actor, 'replace a user', id)
    const input = decode()
    const condition = decodeCondition()
    if (id === undefined) throw badInput('A user id is an integer from 1 to 9007199254740991')
    const values = await this.#valuesOf(input)
    const outcome = await this.#parts.store.replaceUser(id, values, this.#rights(actor, id), condition)
    if (outcome === 'creation refused') throw notPermitted(actor)
    const replaced = accepted(actor, outcome)
    this.#parts.bus.notify()
    return replaced
  }

  async change(
    actor: Actor,
    id: number | undefined,
    decode: Decode<Partial<UserInput>>,
    decodeCondition: Decode<Condition>,
  ): Promise<User> {
    this.#parts.access.require(actor, 'change a user', id)
    const { password, ...values } = decode()
    const condition = decodeCondition()
    if (id === undefined) throw absentUser()
    const changes = { ...values, ...(password !== undefined && (await this.#newPassword(password))) }
    const outcome = await this.#parts.store.changeUser(id, changes, this.#rights(actor, id), condition)
    if (outcome === 'absent') throw absentUser()
    const changed = accepted(actor, outcome)
    this.#parts.bus.notify()
    return changed
  }

  /** Only the first step checks the condition: once a part of the content is deleted, the rest must be deleted too. */
  async delete(actor: Actor, id: number | undefined, decodeCondition: Decode<Condition>): Promise<void> {
    this.#parts.access.require(actor, 'delete a user', id)
    let condition = decodeCondition()
    if (id === undefined) return
    let outcome: 'gone' | 'more'
    do {
      outcome = accepted(actor, await this.#parts.store.deleteUser(id, actor, condition))
      condition = unconditional
      this.#parts.bus.notify()
    } while (outcome === 'more')
  }

  async role(actor: Actor, id: number | undefined): Promise<Role> {
    this.#parts.access.require(actor, 'read a role')
    return present(id === undefined ? undefined : await this.#parts.store.tokenState(id), absentUser).role
  }

  async setRole(actor: Actor, id: number | undefined, decode: Decode<Role>): Promise<Role> {
    this.#parts.access.require(actor, 'change a role')
    if (actor.kind === 'anonymous') throw notPermitted(actor)
    const role = decode()
    if (id === undefined) throw absentUser()
    const outcome = accepted(actor, await this.#parts.store.changeRole(actor, id, role, this.#parts.randomness.id()))
    if (outcome === 'absent') throw absentUser()
    if (outcome === 'last admin') throw new AppError('conflict', 'The last admin stays an admin')
    this.#parts.bus.notify()
    return role
  }

  #rights(actor: Actor, id: number): WriteRights {
    return {
      actor,
      mayChangePassword: this.#parts.access.allows(actor, 'change an existing password', id),
      mayCreate: this.#parts.access.allows(actor, 'create a user'),
    }
  }

  async #valuesOf(input: UserInput): Promise<UserValues> {
    const { name, email, password } = input
    return { name, email, ...profileOf(field => input[field] ?? null), ...(await this.#newPassword(password)) }
  }

  async #newPassword(password: string | undefined): Promise<Pick<UserValues, 'password' | 'tokenVersion'>> {
    const { passwords, randomness } = this.#parts
    const hash = password === undefined ? undefined : await waiting('password', passwords.hash(password))
    return { password: hash === undefined ? null : { hash }, tokenVersion: randomness.id() }
  }
}

/** How long a long page waits for others. With a slow database it would wait for minutes, also behind clients that have gone. */
const longestWaitMs = 5_000

/** Throws the error for an outcome that is a refusal. */
function accepted<Outcome>(
  actor: Actor,
  outcome: Outcome | WriteRefusal | Unmet,
): Exclude<Outcome, WriteRefusal | Unmet> {
  if (outcome === 'changed' || outcome === 'exists') throw unmetCondition('user', outcome as Unmet)
  if (outcome === 'email taken') throw new AppError('conflict', 'Email is already in use')
  if (outcome === 'password protected') throw notPermitted(actor)
  if (outcome === 'token revoked') throw invalidToken()
  return outcome as Exclude<Outcome, WriteRefusal | Unmet>
}
