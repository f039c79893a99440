import { serveOrders } from './orders.ts'
import { servePasswordResets } from './password-resets.ts'
import { servePayments } from './payments.ts'
import type { Rest } from './request.ts'
import { serveTokens } from './tokens.ts'
import { serveUsers } from './users.ts'

/** Serves every resource, at the root and below `/api`. */
export async function serveRest({ server, ...parts }: Rest): Promise<void> {
  for (const prefix of prefixes) {
    const register = async (server: Rest['server']) => {
      for (const serve of resources) serve({ server, ...parts })
    }
    await server.register(register, { prefix })
  }
}

const resources = [serveUsers, serveOrders, servePayments, serveTokens, servePasswordResets]
export const prefixes = ['', '/api']
