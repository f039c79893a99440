import { setImmediate as turn } from 'node:timers/promises'
import { roles } from '../core/actor.ts'
import { badInput, type Fields, isBlank, isObject } from '../core/input.ts'
import type { ListedUser } from '../core/store.ts'
import {
  profileFields,
  profileRules,
  searchText,
  type User,
  type UserInput,
  type UserListRequest,
  userRules,
} from '../core/users/user.ts'
import { largeBytes } from '../http/unread.ts'
import { release } from '../lib/v8.ts'
import { decodeCondition, sendRevised } from './conditions.ts'
import { decodePage, fieldsOf, idIn, oneOf, type Rest } from './request.ts'

/** `/users`. Each route decodes the request, calls one operation and builds the response. */
export function serveUsers({ server, authenticate, users, links }: Rest): void {
  const options = { onRequest: authenticate }

  server.get('/users', options, async (request, reply) => {
    const page = await users.list(request.actor, () => decodeUserList(request.query as Fields))
    links.addPages(reply, '/users', page, { email: page.email, q: page.q })
    reply.type('application/json; charset=utf-8')
    const list = await listOf(page.items)
    if (list.length >= largeBytes && typeof list !== 'string') reply.raw.once('close', () => release(list))
    return list
  })

  server.post('/users', options, async (request, reply) => {
    const user = await users.create(request.actor, () => decodeUser(request.body))
    reply.code(201).header('location', links.to('users', user.id))
    return represent(user)
  })

  server.get('/users/me', options, async (request, reply) =>
    sendRevised(request, reply, await users.readSelf(request.actor), represent),
  )

  server.get('/users/:id', options, async (request, reply) =>
    sendRevised(request, reply, await users.read(request.actor, idIn(request)), represent),
  )

  server.put('/users/:id', options, async (request, reply) => {
    const { user, created } = await users.replace(
      request.actor,
      idIn(request),
      () => decodeUser(request.body),
      () => decodeCondition(request),
    )
    if (created) reply.code(201).header('location', links.to('users', user.id))
    return represent(user)
  })

  server.patch('/users/:id', options, async request =>
    represent(
      await users.change(
        request.actor,
        idIn(request),
        () => decodeFields(fieldsOf(request.body)),
        () => decodeCondition(request),
      ),
    ),
  )

  server.get('/users/:id/role', options, async request => ({ role: await users.role(request.actor, idIn(request)) }))

  server.put('/users/:id/role', options, async request => {
    const decode = () => oneOf('role', fieldsOf(request.body).role, roles)
    return { role: await users.setRole(request.actor, idIn(request), decode) }
  })

  server.delete('/users/:id', options, async (request, reply) => {
    await users.delete(request.actor, idIn(request), () => decodeCondition(request))
    return reply.code(204).send()
  })
}

/** The JSON of a list. Others need not wait until all of a thousand users are written. */
async function listOf(users: readonly ListedUser[]): Promise<string | Buffer> {
  const written = users.flatMap(user => ('json' in user ? [comma, user.json] : []))
  if (written.length > 0) return Buffer.concat([opening, ...written.slice(1), closing])
  const shown = users.flatMap(user => ('json' in user ? [] : [represent(user)]))
  const texts = [JSON.stringify(shown.slice(0, writtenTogether))]
  for (let at = writtenTogether; at < shown.length; at += writtenTogether) {
    await turn()
    texts.push(JSON.stringify(shown.slice(at, at + writtenTogether)))
  }
  return texts.length === 1 ? texts.join() : joinedLists(texts)
}

const writtenTogether = 100
const [opening, comma, closing] = [Buffer.from('['), Buffer.from(','), Buffer.from(']')]

/** Joins lists into one. A character takes at most three bytes here. To count them first would take longer. */
async function joinedLists(texts: readonly string[]): Promise<Buffer> {
  const most = texts.reduce((sum, { length }) => sum + 3 * length, 0)
  const bytes = Buffer.allocUnsafeSlow(most)
  let end = 0
  for (const text of texts) {
    await turn()
    const start = Math.max(0, end - 1) // instead of the closing bracket
    end = start + bytes.write(text, start)
    if (start > 0) bytes.write(',', start)
  }
  return bytes.subarray(0, end)
}

/** The response omits fields that are not set. */
function represent(user: User): object {
  const shown: Record<string, unknown> = { id: user.id, name: user.name, email: user.email }
  for (const field of profileFields) if (user[field] !== null) shown[field] = user[field]
  return shown
}

function decodeUserList(query: Fields): UserListRequest {
  const { email, q } = query
  const page = decodePage(query)
  if (q === undefined) return email === undefined ? page : { ...page, email: userRules.email(email) }
  if (email !== undefined) throw badInput('q and email cannot be used together')
  if (page.offset > 0) throw badInput('q and offset cannot be used together')
  return { ...page, q: searchText(q) }
}

/** For POST and PUT: name and email are required. `null` in any other field counts as not sent. */
function decodeUser(body: unknown): UserInput {
  const fields = isObject(body) ? body : {}
  const { name, email } = fields
  if (!isFilled(name) || !isFilled(email)) throw badInput('Name and email required')
  const given = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null))
  return { name, email, ...decodeFields(given) }
}

function isFilled(value: unknown): value is string {
  return typeof value === 'string' && !isBlank(value)
}

/** The fields that are sent. `null` removes a value. */
function decodeFields(fields: Fields): Partial<UserInput> {
  const decoded: Record<string, unknown> = {}
  for (const [name, rule] of Object.entries(rules)) {
    const value = fields[name]
    if (value !== undefined) decoded[name] = value === null && name in profileRules ? null : rule(value)
  }
  return decoded
}

const { password, ...required } = userRules
const rules = { ...required, ...profileRules, password }
