import type { Reach } from './access.ts'
import type { Actor, Role } from './actor.ts'
import type { EventLog } from './events.ts'
import type { Order, OrderItem, StoredItem, Tracking } from './orders/order.ts'
import type { PageRequest } from './page.ts'
import type { Payment } from './payments/payment.ts'
import type { Selection, Slot, SlotValues } from './selection.ts'
import type { Profile, Standing, User } from './users/user.ts'

/** Everything the core keeps. Each method is atomic, and durable once it has answered. */
export interface Store {
  /** Answers when both reading and writing are possible; rejects with `unavailable` otherwise. */
  ping(): Promise<void>
  readonly users: UserStore
  readonly orders: OrderStore
  readonly payments: PaymentStore
  readonly posts: PostStore
  readonly events: EventLog
}

export interface UserStore {
  /** By id; one more than the limit, if there is one. */
  list(page: PageRequest): Promise<readonly User[]>
  read(id: number): Promise<User | undefined>
  standing(id: number): Promise<Standing | undefined>
  credentials(loginKey: string): Promise<Credentials | undefined>
  create(values: UserValues): Promise<User | 'email taken'>
  /** Creates the user under this id where there is none. */
  replace(id: number, values: UserValues, rights: WriteRights): Promise<Replaced | WriteRefusal>
  change(id: number, values: Partial<UserValues>, rights: WriteRights): Promise<User | 'absent' | WriteRefusal>
  /** `more`: a part of the user's content is gone, and the rest takes further calls. */
  delete(id: number, actor: Actor): Promise<'gone' | 'more' | 'token revoked'>
  setRole(user: { id: number } | { loginKey: string }, role: Role, mark: string): Promise<'set' | 'absent'>
}

export interface Credentials extends Standing {
  readonly id: number
  readonly passwordHash: string
}

export interface UserValues extends Profile {
  readonly name: string
  readonly email: string
  /** A new password; without it an existing one stays. */
  readonly password: { readonly hash: string } | null
  /** For a new row, or a new password. */
  readonly mark: string
}

/** Whoever writes must still be who they were when they were let in: passwords take their time to be hashed. */
export interface WriteRights {
  readonly actor: Actor
  readonly mayChangePassword: boolean
}

export interface Replaced {
  readonly user: User
  readonly created: boolean
}

export type WriteRefusal = 'email taken' | 'password protected' | 'token revoked'

/** Orders and payments beyond the reach of who asks are absent. */
export interface OrderStore {
  /** By id; one more than the limit, if there is one. */
  listOf(userId: number, page: PageRequest): Promise<readonly Order[] | 'absent'>
  read(id: number, reach: Reach): Promise<Order | undefined>
  items(id: number, reach: Reach): Promise<readonly StoredItem[]>
  tracking(id: number, reach: Reach): Promise<TrackedOrder | undefined>
  create(userId: number, items: readonly OrderItem[], actor: Actor): Promise<Order | 'absent' | 'token revoked'>
  cancel(id: number, actor: Actor, reach: Reach): Promise<'gone' | 'already shipped' | 'token revoked'>
}

export interface TrackedOrder {
  readonly order: Order
  readonly tracking: Tracking | null
}

export interface PaymentStore {
  read(id: number, reach: Reach): Promise<Payment | undefined>
  /** The payment that the key was used for, while it lasts. */
  claimed(claim: Claim): Promise<Payment | undefined>
  /** Claims the key, pays and moves the order on, all or nothing; a key that is claimed already gives its payment. */
  pay(actor: Actor, purpose: Purpose, claim: Claim | null): Promise<Paid | PaymentRefusal>
  /** Removes some of the keys whose time is over; says how many. */
  purgeKeys(): Promise<number>
}

/** Equal keys of different scopes are different keys. */
export interface IdempotencyKey {
  readonly scope: string
  readonly key: string
}

/** A key belongs to its caller. Callers without a token are one caller. */
export interface Claim extends IdempotencyKey {
  readonly callerId: number | null
  readonly ttlSeconds: number
}

export type Purpose = { readonly cents: number } | { readonly orderId: number; readonly reach: Reach }

export interface Paid {
  readonly payment: Payment
  /** As it is now, where an order was paid. */
  readonly order: Order | null
  /** Whether the key had been used before. */
  readonly replayed: boolean
}

export type PaymentRefusal = 'order absent' | 'order already paid' | 'token revoked'

/** Posts, comments and the users who write them, in the form that readers ask for. */
export interface PostStore {
  exists(postId: number): Promise<boolean>
  /** The JSON of an object with what is wished for, all of it as of one moment; `answer-too-large` beyond the bound. */
  read(selection: Selection, values: SlotValues): Promise<string>
  /** Makes the changes one after the other, all or none. */
  change(actor: Actor, changes: readonly Change[]): Promise<readonly ChangeResult[] | ChangeRefusal>
}

/** An id that cannot name a post comes as null: there is none. */
export type Change =
  | { readonly kind: 'create post'; readonly title: string; readonly content: string; readonly show: Show }
  | { readonly kind: 'add comment'; readonly postId: number | null; readonly text: string; readonly show: Show }
  | { readonly kind: 'like post'; readonly id: number | null; readonly show: Show }
  | { readonly kind: 'delete post'; readonly id: number | null; readonly reach: Reach }

/** What to read of the post or comment that was made or changed, once its id has been put into the slot. */
export interface Show {
  readonly selection: Selection
  readonly values: SlotValues
  readonly id: Slot
}

/** The JSON of what was to be shown, or whether something was deleted. */
export type ChangeResult = string | boolean

export interface ChangeRefusal {
  readonly refused: 'post absent' | 'not permitted' | 'token revoked'
  /** Which of the changes. */
  readonly at: number
}
