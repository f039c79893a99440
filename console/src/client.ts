import { connect, graphql, keepIn, live, orders, passwordResets, payments, users } from '../../client/src/index.ts'
import { serviceUrl } from './settings.ts'
import { logRequest } from './state/requests.ts'

const storage = keepIn(localStorage)

/** The only connection of a page. Its session is that of all pages and tabs of this service. */
export const duet = connect({ url: serviceUrl, storage, onRequest: logRequest })

/** The token of the session, for scripts that do not use the client. */
export const token = (): string | undefined => storage.get() ?? undefined

export const api = {
  graphql: graphql(duet),
  live: live(duet),
  orders: orders(duet),
  passwordResets: passwordResets(duet),
  payments: payments(duet),
  users: users(duet),
}
