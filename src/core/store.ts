import type { Reach } from './access.ts'
import type { Actor, IdentifiedUser, Role } from './actor.ts'
import type { Condition, Revised, Unmet } from './condition.ts'
import type { EventLog } from './events.ts'
import type { Order, OrderItem, OrderListRequest, StoredItem, Tracking } from './orders/order.ts'
import type { PageRequest } from './page.ts'
import type { Payment } from './payments/payment.ts'
import type { Answer, Selection, Slot, SlotValues } from './selection.ts'
import type { Profile, TokenState, User, UserList, UserListRequest } from './users/user.ts'

/** All persistent data of the core. Each method is atomic, and its effect is durable when its promise resolves. */
export interface Store extends UserStore, ResetStore, OrderStore, PaymentStore, PostStore {
  /** Resolves if both reads and writes work; rejects with `unavailable` otherwise. */
  ping(): Promise<void>
  readonly events: EventLog
}

export interface UserStore {
  /** Sorted by id. With `own`, the parts are shared with no other page, and the caller may free their memory. */
  listUsers(request: UserListRequest, own: boolean): Promise<UserList>
  readUser(id: number): Promise<Revised<User> | undefined>
  tokenState(id: number): Promise<TokenState | undefined>
  credentials(loginKey: string): Promise<Credentials | undefined>
  /** Without a role: a member. */
  createUser(values: UserValues, actor: Actor, role?: Role): Promise<User | 'email taken' | 'token revoked'>
  /** Creates the user with this id if it does not exist and the rights allow it. */
  replaceUser(
    id: number,
    values: UserValues,
    rights: WriteRights,
    condition: Condition,
  ): Promise<Replaced | 'creation refused' | Unmet | WriteRefusal>
  changeUser(
    id: number,
    values: Partial<UserValues>,
    rights: WriteRights,
    condition: Condition,
  ): Promise<User | 'absent' | Unmet | WriteRefusal>
  /** `more`: a part of the user's content is deleted, and the caller must call again to delete the rest. */
  deleteUser(id: number, actor: Actor, condition: Condition): Promise<'gone' | 'more' | Unmet | 'token revoked'>
  /** Renews the token version, which revokes all tokens of the user. */
  revokeTokens(actor: IdentifiedUser, tokenVersion: string): Promise<'revoked' | 'token revoked'>
  /** Users with an id above `after`, sorted by id, at most `limit` of them. */
  listAccounts(after: number, limit: number): Promise<readonly Account[]>
  /** For an operator: also demotes the last admin. */
  setRole(user: { id: number } | { loginKey: string }, role: Role, tokenVersion: string): Promise<'set' | 'absent'>
  /** A role that the user has already changes nothing, and revokes no token. */
  changeRole(actor: IdentifiedUser, id: number, role: Role, tokenVersion: string): Promise<RoleOutcome>
}

/** Password resets: requests whose mails wait, and the hashes of the secrets that were sent. */
export interface ResetStore {
  /** An e-mail that waits already waits once. `full`: too many wait. */
  requestReset(emailKey: string): Promise<'waits' | 'full'>
  hasDueResets(): Promise<boolean>
  /** Takes mails that are due, for a minute. Each gets one of the hashes; the secret of an earlier try is void. */
  takeResets(hashes: readonly string[]): Promise<readonly DueReset[]>
  endReset(id: number): Promise<void>
  /** `over`: it was tried for long enough. */
  postponeReset(id: number, seconds: number): Promise<'waits' | 'over'>
  hasReset(secretHash: string): Promise<boolean>
  /** Sets the password, revokes all tokens of the user, and voids all other secrets of the user. */
  completeReset(secretHash: string, passwordHash: string, tokenVersion: string): Promise<'done' | 'absent'>
  /** Deletes some that have expired and returns how many. */
  purgeResets(): Promise<number>
}

export interface DueReset {
  readonly id: number
  readonly email: string
  /** This one counted. */
  readonly tries: number
  readonly hash: string
}

/** What an operator sees of a user. */
export interface Account {
  readonly id: number
  readonly role: Role
  readonly canLogIn: boolean
  readonly email: string
  readonly name: string
}

export interface Credentials extends TokenState {
  readonly id: number
  readonly passwordHash: string
}

export interface UserValues extends Profile {
  readonly name: string
  readonly email: string
  /** A new password. `null` keeps an existing one. */
  readonly password: { readonly hash: string } | null
  /** The token version to store with a new row or a new password. */
  readonly tokenVersion: string
}

/**
 * The store checks within the write that the actor's token is still valid: hashing a password takes time, and the token
 * may be revoked meanwhile.
 */
export interface WriteRights {
  readonly actor: Actor
  readonly mayChangePassword: boolean
  readonly mayCreate: boolean
}

export interface Replaced {
  readonly user: User
  readonly created: boolean
}

export type RoleOutcome = 'set' | 'absent' | 'last admin' | 'token revoked'

export type WriteRefusal = 'email taken' | 'password protected' | 'token revoked'

/** Orders and payments outside the caller's reach count as absent. */
export interface OrderStore {
  /** Sorted by id. Returns one row more than the limit if there are more. */
  listOrders(userId: number, request: OrderListRequest): Promise<readonly Order[] | 'absent'>
  listAllOrders(request: OrderListRequest): Promise<readonly Order[]>
  readOrder(id: number, reach: Reach): Promise<Revised<Order> | undefined>
  orderItems(id: number, reach: Reach): Promise<readonly StoredItem[]>
  trackOrder(id: number, reach: Reach): Promise<TrackedOrder | undefined>
  createOrder(userId: number, items: readonly OrderItem[], actor: Actor): Promise<Order | 'absent' | 'token revoked'>
  cancelOrder(
    id: number,
    actor: Actor,
    reach: Reach,
    condition: Condition,
  ): Promise<'gone' | 'already shipped' | Unmet | 'token revoked'>
}

export interface TrackedOrder {
  readonly order: Order
  readonly tracking: Tracking | null
}

export interface PaymentStore {
  /** The payments that a user made, or all of them, sorted by id. Returns one row more than the limit if there are more. */
  listPayments(reach: Reach, request: PageRequest): Promise<readonly Payment[]>
  readPayment(id: number, reach: Reach): Promise<Revised<Payment> | undefined>
  /** The payment that this key was used for, if the key has not expired. */
  claimedPayment(claim: Claim): Promise<Payment | undefined>
  /**
   * Claims the key, stores the payment and updates the order, in one transaction. If the key is claimed already, it
   * returns the existing payment.
   */
  pay(actor: Actor, purpose: Purpose, claim: Claim | null): Promise<Paid | PaymentRefusal>
  /** Deletes some of the expired keys and returns how many. */
  purgeKeys(): Promise<number>
}

/** The same key in two scopes counts as two different keys. */
export interface IdempotencyKey {
  readonly scope: string
  readonly key: string
}

/** A key belongs to its caller. All callers without a token count as one caller. */
export interface Claim extends IdempotencyKey {
  readonly callerId: number | null
  readonly ttlSeconds: number
}

export type Purpose = { readonly cents: number } | OrderPurpose

export interface OrderPurpose {
  readonly orderId: number
  readonly reach: Reach
  /** Not checked if the key is claimed already. */
  readonly condition: Condition
}

export interface Paid {
  readonly payment: Payment
  /** The order in its current state, if the payment paid an order. */
  readonly order: Order | null
  /** Whether the key had been used before. */
  readonly replayed: boolean
}

export type PaymentRefusal = 'order absent' | 'order already paid' | 'token revoked' | Unmet

/** Posts, comments and their authors, in the form that a selection asks for. */
export interface PostStore {
  hasPost(postId: number): Promise<boolean>
  /**
   * Returns the JSON of an object with the selected fields, all read from one snapshot. Rejects with `answer-too-large`
   * beyond the size limit.
   */
  select(selection: Selection, values: SlotValues): Promise<Answer>
  /** Like `select`, for a selection of one object. Returns `undefined` if that object does not exist. */
  selectOne(selection: Selection, values: SlotValues): Promise<string | undefined>
  /**
   * Makes the changes in the given order, in one transaction: all or none. `more`: the only change is the deletion of a
   * post with very many comments, and some of these are deleted. Call it again for the rest.
   */
  changePosts(actor: Actor, changes: readonly Change[]): Promise<readonly ChangeResult[] | 'more' | ChangeRefusal>
}

/** `null` as id stands for an id that no row can have. A title or content that is `null` stays as it is. */
export type Change = Readonly<
  | { kind: 'create a post'; title: string; content: string; show: Show }
  | ({ kind: 'update a post'; id: number | null; title: string | null; content: string | null } & Update)
  | { kind: 'delete a post'; id: number | null; reach: Reach }
  | { kind: 'like a post'; id: number | null; show: Show }
  | { kind: 'add a comment'; postId: number | null; text: string; show: Show }
  | ({ kind: 'update a comment'; commentId: number | null; text: string } & Update)
  | { kind: 'delete a comment'; commentId: number | null; reach: Reach }
>

/** `ifUpdatedAt`: refused if it was last updated at another time. `null`: whenever that was. */
interface Update {
  ifUpdatedAt: string | null
  reach: Reach
  show: Show
}

/** The fields to read of the created or changed post or comment. The store puts its id into the slot `id` first. */
export interface Show {
  readonly selection: Selection
  readonly values: SlotValues
  readonly id: Slot
}

/** The JSON of the selected fields, or for a deletion whether something was deleted. */
export type ChangeResult = string | boolean

export interface ChangeRefusal {
  readonly refused:
    | 'post absent'
    | 'comment absent'
    | 'not permitted'
    | 'post changed'
    | 'comment changed'
    | 'token revoked'
  /** The index of the refused change. */
  readonly at: number
}
