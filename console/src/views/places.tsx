import type { ComponentType } from 'preact'
import type { IconName } from '../parts/icon.tsx'
import { settings } from '../settings.ts'
import type { RouteName } from '../state/route.ts'
import { seesAll, who } from '../state/session.ts'
import { AccountPage } from './account-page.tsx'
import { Feed } from './feed.tsx'
import { Forgot, Reset } from './forgot.tsx'
import { Health } from './health.tsx'
import { OrderPage } from './order.tsx'
import { Orders } from './orders.tsx'
import { Payments } from './payments.tsx'
import { PostPage } from './post-page.tsx'
import { Requests } from './requests.tsx'
import { SignInPage } from './sign-in.tsx'
import { UserPage } from './user.tsx'
import { Users } from './users.tsx'

type View = ComponentType<{ readonly id: string }>

interface Place {
  readonly view: View
  /** For an address with an id. */
  readonly item?: View
  readonly audience: Audience
  /** Whether its lines of text should stay short. */
  readonly narrow?: boolean
}

/** Who may see a place. The service decides; this spares a person a view that is only an error. */
type Audience = 'everybody' | 'users' | 'admins' | 'oneself'

/** What each address shows. */
export const places: Readonly<Partial<Record<RouteName, Place>>> = {
  feed: { view: Feed, audience: 'everybody', narrow: true },
  posts: { view: Feed, item: PostPage, audience: 'everybody', narrow: true },
  users: { view: Users, item: UserPage, audience: 'admins' },
  orders: { view: Orders, item: OrderPage, audience: 'users' },
  payments: { view: Payments, audience: 'users' },
  requests: { view: Requests, audience: 'everybody' },
  health: { view: Health, audience: 'everybody' },
  account: { view: AccountPage, audience: 'oneself', narrow: true },
  'sign-in': { view: SignInPage, audience: 'everybody', narrow: true },
  forgot: { view: Forgot, audience: 'everybody', narrow: true },
  reset: { view: Reset, item: Reset, audience: 'everybody', narrow: true },
  'sign-up': { view: SignInPage, audience: 'everybody', narrow: true },
}

/** Under the open policy, the service shows everything to everybody. */
export function maySee(audience: Audience): boolean {
  if (audience === 'admins') return seesAll.value
  if (who.value !== undefined || audience === 'everybody') return true
  return audience === 'users' && settings.policy === 'open'
}

interface Tab {
  readonly name: RouteName & IconName
  readonly title: string
  readonly audience: Audience
}

/** The navigation, as far as a person may see its places and has a use for them. */
export const tabs: readonly Tab[] = [
  { name: 'feed', title: 'Feed', audience: 'everybody' },
  { name: 'users', title: 'Users', audience: 'admins' },
  { name: 'orders', title: 'Orders', audience: 'users' },
  { name: 'payments', title: 'Payments', audience: 'users' },
  { name: 'requests', title: 'Requests', audience: 'admins' },
  { name: 'health', title: 'Health', audience: 'admins' },
  { name: 'account', title: 'Account', audience: 'oneself' },
]
