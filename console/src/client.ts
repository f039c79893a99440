import { connect, graphql, keepIn, live, orders, payments, users } from '../../client/src/index.ts'
import { serviceUrl } from './settings.ts'
import { logRequest } from './state/requests.ts'

/** The only connection of the console. The token is deleted with the browser's tab. */
export const duet = connect({ url: serviceUrl, storage: keepIn(sessionStorage), onRequest: logRequest })

export const api = {
  graphql: graphql(duet),
  live: live(duet),
  orders: orders(duet),
  payments: payments(duet),
  users: users(duet),
}
