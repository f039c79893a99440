import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import type { FastifyReply } from 'fastify'
import { roles } from '../core/actor.ts'
import { badInput, type Fields, isBlank, isObject } from '../core/input.ts'
import {
  profileFields,
  profileRules,
  searchText,
  type User,
  type UserInput,
  type UserListRequest,
  type UserPart,
  userRules,
} from '../core/users/user.ts'
import { Pace } from '../lib/pace.ts'
import { encode, release } from '../lib/v8.ts'
import { decodeCondition, sendRevised } from './conditions.ts'
import { decodePage, fieldsOf, idIn, oneOf, type Rest } from './request.ts'

/** `/users`. Each route decodes the request, calls one operation and builds the response. */
export function serveUsers({ server, authenticate, users, links }: Rest): void {
  const options = { onRequest: authenticate }

  server.get('/users', options, async (request, reply) => {
    const decode = () => decodeUserList(request.query as Fields)
    const { written, last, ...page } = await users.list(request.actor, decode, writeUsers)
    const items = last === undefined ? [] : [{ id: last }]
    links.addPages(reply, '/users', { ...page, items }, { email: page.email, q: page.q })
    reply.type('application/json; charset=utf-8')
    return Array.isArray(written) ? sendLong(reply, written) : written
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

/** The JSON of a page, or that of each part of a long one without brackets. Others are served in between. */
async function writeUsers(parts: readonly UserPart[]): Promise<string | Uint8Array | readonly Uint8Array[]> {
  const [first = []] = parts
  if (parts.length < 2)
    return first instanceof Uint8Array ? Buffer.concat([opening, first, closing]) : JSON.stringify(first.map(represent))
  const pace = new Pace()
  const written: Uint8Array[] = []
  for (const part of parts) written.push(part instanceof Uint8Array ? part : await bytesOf(part, pace))
  return written
}

async function bytesOf(users: readonly User[], pace: Pace): Promise<Uint8Array> {
  const text = JSON.stringify(users.map(represent))
  await pace.rest()
  const bytes = encode(text).subarray(1, -1)
  await pace.rest()
  return bytes
}

/** Others are served in between. */
function sendLong(reply: FastifyReply, parts: readonly Uint8Array[]): FastifyReply {
  const pieces = [...parts.flatMap((part, at) => [at === 0 ? opening : comma, part]), closing]
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0)
  reply.header('content-length', length)
  reply.raw.once('close', () => parts.forEach(release))
  return reply.send(Readable.from(inTurns(pieces, reply.raw), { objectMode: false }))
}

async function* inTurns(pieces: readonly Uint8Array[], response: ServerResponse): AsyncGenerator<Uint8Array> {
  for (const piece of pieces) {
    if (response.closed) return // HEAD has been answered, or the client has gone, and the memory is freed
    yield piece
    await turn()
  }
}

const [opening, comma, closing] = [Buffer.from('['), Buffer.from(','), Buffer.from(']')]

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
  return { name, email, ...decodeFields(fields, 'not sent') }
}

function isFilled(value: unknown): value is string {
  return typeof value === 'string' && !isBlank(value)
}

/** The fields that are sent. By default `null` removes a value. */
function decodeFields(fields: Fields, meaningOfNull: 'removed' | 'not sent' = 'removed'): Partial<UserInput> {
  const decoded: Record<string, unknown> = {}
  for (const [name, rule] of rules) {
    const value = fields[name]
    if (value === undefined || (value === null && meaningOfNull === 'not sent')) continue
    decoded[name] = value === null && name in profileRules ? null : rule(value)
  }
  return decoded
}

const { password, ...required } = userRules
const rules = Object.entries({ ...required, ...profileRules, password })
