import { randomBytes } from 'node:crypto'
import { text } from 'node:stream/consumers'
import type { Config } from '../config.ts'
import { anonymous } from '../core/actor.ts'
import { AppError } from '../core/errors.ts'
import { profileOf, userRules } from '../core/users/user.ts'
import { Argon2Passwords } from '../security/passwords.ts'
import { createStore } from '../storage/store.ts'
import { systemRandomness } from '../wiring/base.ts'
import { complain } from './complain.ts'
import { isRole, roleComplaint } from './roles.ts'
import { refuseTemporary, requireFile, withDatabase } from './with-database.ts'

type Options = Readonly<Record<string, string | boolean | undefined>>

/** `duet users create`. A password is never an argument, because every user of a machine can read those. */
export async function createUser(config: Config, options: Options): Promise<number> {
  const { email, name = String(email).split('@')[0], role = 'member', 'password-stdin': fromStdin = false } = options
  if (!isRole(role)) return complain(roleComplaint)
  refuseTemporary(config.database)
  requireFile(config.database)
  const password = fromStdin ? await firstLine() : randomBytes(15).toString('base64url')
  const user = checked({ email, name, password })
  if (typeof user === 'string') return complain(user)
  const hash = await new Argon2Passwords().hash(user.password)
  const values = { ...profileOf(() => null), ...user, password: { hash }, tokenVersion: systemRandomness.id() }
  const created = await withDatabase(config, engine => createStore(engine).createUser(values, anonymous, role))
  if (typeof created === 'string') return complain('another user logs in with this e-mail already')
  console.log(`User ${created.id} is created, with the role ${role}.`)
  if (!fromStdin) console.log(`Password: ${password}`)
  return 0
}

/** Returns the input if it follows the rules for users, otherwise the error message. */
function checked(input: Readonly<Record<'email' | 'name' | 'password', unknown>>) {
  try {
    const { email, name, password } = userRules
    return { email: email(input.email), name: name(input.name), password: password(input.password) }
  } catch (error) {
    if (error instanceof AppError) return error.message
    throw error
  }
}

async function firstLine(): Promise<string> {
  const [line = ''] = (await text(process.stdin)).split(/\r?\n/)
  return line
}
