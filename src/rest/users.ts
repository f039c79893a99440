import type { Users } from '../core/users/operations.ts'
import { profileFields, type User } from '../core/users/user.ts'
import { decodeCondition, sendRevised } from './conditions.ts'
import { decodeUser, decodeUserChanges, decodeUserList } from './decode/users.ts'
import type { Links } from './links.ts'
import { userOperations } from './openapi/users.ts'
import { clientOf, idIn, queryOf, type RestServer } from './routes.ts'

/** `/users`. Each route decodes the request, calls one operation and builds the response. */
export function serveUsers({ server, authenticate, prefix, proxies }: RestServer, users: Users, links: Links): void {
  const path = `${prefix}/users`
  const options = (name: keyof typeof userOperations) => ({
    onRequest: authenticate,
    config: { operation: userOperations[name] },
  })

  server.get(path, options('list'), async (request, reply) => {
    const page = await users.list(request.actor, () => decodeUserList(queryOf(request)))
    const pages = links.pages('/users', page, { email: page.email })
    if (pages !== undefined) reply.header('link', pages)
    return page.items.map(represent)
  })

  server.post(path, options('create'), async (request, reply) => {
    const user = await users.create(request.actor, () => decodeUser(request.body), clientOf(request, proxies))
    reply.code(201).header('location', links.user(user.id))
    return represent(user)
  })

  server.get(`${path}/me`, options('readSelf'), async (request, reply) =>
    sendRevised(request, reply, await users.readSelf(request.actor), represent),
  )

  server.get(`${path}/:id`, options('read'), async (request, reply) =>
    sendRevised(request, reply, await users.read(request.actor, idIn(request)), represent),
  )

  server.put(`${path}/:id`, options('replace'), async (request, reply) => {
    const { user, created } = await users.replace(
      request.actor,
      idIn(request),
      () => decodeUser(request.body),
      clientOf(request, proxies),
      () => decodeCondition(request),
    )
    if (created) reply.code(201).header('location', links.user(user.id))
    return represent(user)
  })

  server.patch(`${path}/:id`, options('change'), async request =>
    represent(
      await users.change(
        request.actor,
        idIn(request),
        () => decodeUserChanges(request.body),
        clientOf(request, proxies),
        () => decodeCondition(request),
      ),
    ),
  )

  server.delete(`${path}/:id`, options('delete'), async (request, reply) => {
    await users.delete(request.actor, idIn(request), () => decodeCondition(request))
    return reply.code(204).send()
  })
}

/** The response omits fields that are not set. */
function represent(user: User): object {
  const shown: Record<string, unknown> = { id: user.id, name: user.name, email: user.email }
  for (const field of profileFields) if (user[field] !== null) shown[field] = user[field]
  return shown
}
