import { randomBytes } from 'node:crypto'
import { text } from 'node:stream/consumers'
import type { Config } from '../config.ts'
import { anonymous, type Role, roles } from '../core/actor.ts'
import { AppError } from '../core/errors.ts'
import { idOf } from '../core/input.ts'
import type { Account } from '../core/store.ts'
import { loginKeyOf, profileOf, userRules } from '../core/users/user.ts'
import { Argon2Passwords } from '../security/passwords.ts'
import { createStore } from '../storage/store.ts'
import { systemRandomness } from '../wiring/base.ts'
import { requireDatabase, withDatabase } from './database.ts'

/** What follows a command on its line, by the names of its options. */
export type Options = Readonly<Record<string, string | boolean | undefined>>

/** `duet users create`. A password is never an argument, because every user of a machine can read those. */
export async function createUser(config: Config, options: Options): Promise<void> {
  const { email, name = String(email).split('@')[0], 'password-stdin': fromStdin = false } = options
  const role = roleOf(options.role ?? 'member')
  requireDatabase(config)
  const password = fromStdin ? (await text(process.stdin)).split(/\r?\n/, 1)[0] : randomBytes(15).toString('base64url')
  const user = { email: userRules.email(email), name: userRules.name(name) }
  const hash = await new Argon2Passwords().hash(userRules.password(password))
  const values = { ...profileOf(() => null), ...user, password: { hash }, tokenVersion: systemRandomness.id() }
  const created = await withDatabase(config, engine => createStore(engine).createUser(values, anonymous, role))
  if (typeof created === 'string') throw new AppError('conflict', 'another user logs in with this e-mail already')
  console.log(`User ${created.id} is created, with the role ${role}.`)
  if (!fromStdin) console.log(`Password: ${password}`)
}

/** `duet users list`: one line for each user, its columns separated by tabs. */
export async function listUsers(config: Config, options: Options): Promise<void> {
  const role = options.role === undefined ? undefined : roleOf(options.role)
  requireDatabase(config)
  process.stdout.on('error', () => process.exit(0)) // the reader has closed the pipe, as `head` does
  console.log('id\trole\tlogin\temail\tname')
  await withDatabase(config, async engine => {
    const store = createStore(engine)
    let page: readonly Account[] = []
    do {
      page = await store.listAccounts(page.at(-1)?.id ?? 0, pageSize)
      for (const { email, name, ...user } of page)
        if (role === undefined || user.role === role)
          console.log([user.id, user.role, user.canLogIn ? 'yes' : 'no', harmless(email), harmless(name)].join('\t'))
    } while (page.length === pageSize)
  })
}

export async function setRole(config: Config, user: string, word: string): Promise<void> {
  const role = roleOf(word)
  requireDatabase(config)
  const id = idOf(user)
  const target = id === undefined ? { loginKey: loginKeyOf(user) } : { id }
  const outcome = await withDatabase(config, engine => createStore(engine).setRole(target, role, systemRandomness.id()))
  if (outcome === 'absent') {
    const byEmail = 'no user can log in with this e-mail; for a user without a password, give the id'
    throw new AppError('not-found', id === undefined ? byEmail : 'there is no user with this id')
  }
  console.log(`Done. The user is now ${role} and has to log in again.`)
}

function roleOf(word: unknown): Role {
  const role = roles.find(known => known === word)
  if (role === undefined) throw new AppError('bad-input', 'the role must be member or admin')
  return role
}

const pageSize = 1000

/**
 * Replaces control and format characters and line separators. Users choose these texts. They must not control the
 * operator's terminal, show letters in another order or hide some.
 */
function harmless(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '\ufffd')
}
