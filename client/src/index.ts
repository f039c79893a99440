export type { Clock } from './clock.ts'
export { type ConnectOptions, type Credentials, connect, type Duet } from './connect.ts'
export { DuetError, type ErrorKind, isDuetError } from './errors.ts'
export { type GraphDocument, type GraphQL, graphql } from './graphql.ts'
export type { Answer, CallOptions, RequestEntry } from './http.ts'
export { type Live, type LiveState, live, type Subscription, type Watcher } from './live.ts'
export { type Operation, operation } from './operation.ts'
export {
  actionsOf,
  type Followed,
  type Link,
  type NewItem,
  type Order,
  type OrderItem,
  type OrderLink,
  type OrderListOptions,
  type OrderStatus,
  type Orders,
  orders,
  type PaidOrder,
  type Tracking,
} from './orders.ts'
export type { PageOptions, Pages } from './pages.ts'
export { type PasswordResets, passwordResets } from './password-resets.ts'
export { type MadePayment, type Payment, type PaymentOptions, type Payments, payments } from './payments.ts'
export type * as Schema from './schema.ts'
export { iterate, mutate, query, subscribe } from './select.ts'
export type { Selected, Selection } from './selection.ts'
export { keepIn, type Session, type SessionChange, type TokenStorage } from './session.ts'
export type { Socket, SocketConstructor } from './socket.ts'
export { type Role, type User, type UserChanges, type UserInput, type Users, users } from './users.ts'
export { etag, type Versioned } from './versions.ts'
