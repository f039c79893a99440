import { userRules } from '../core/users/user.ts'
import { fieldsOf, type Rest } from './request.ts'

/** `/password-resets`: asks for a mail with a secret, and sets a new password with it. */
export function servePasswordResets({ server, authenticate, passwordResets }: Rest): void {
  const options = { onRequest: authenticate }

  server.post('/password-resets', options, async (request, reply) => {
    const { actor, client, body } = request
    await passwordResets.request(actor, client, () => userRules.email(fieldsOf(body).email))
    reply.code(202)
    return {}
  })

  server.put('/password-resets/:secret', options, async (request, reply) => {
    const { actor, client, body } = request
    const { secret } = request.params as { secret: string }
    await passwordResets.complete(actor, client, secret, () => userRules.password(fieldsOf(body).password))
    return reply.code(204).send()
  })
}
