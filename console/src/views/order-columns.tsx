import type { Column } from '../parts/table.tsx'
import { Age } from '../parts/time.tsx'
import { money } from '../state/currency.ts'
import { names } from '../state/names.ts'
import type { KnownOrder } from '../state/orders.ts'
import { href } from '../state/route.ts'
import { seesAll } from '../state/session.ts'

type OrderColumn = Column<KnownOrder>

export const orderColumn: OrderColumn = {
  title: 'Order',
  cell: ({ id }) => <a href={href('orders', id)}>Order {id}</a>,
}

export const ownerColumn: OrderColumn = { title: 'Owner', cell: order => <Owner order={order} /> }

export const placedColumn: OrderColumn = {
  title: 'Placed',
  cell: order => <Age of={order.created_at} />,
}

export const statusColumn: OrderColumn = { title: 'Status', cell: ({ status }) => <StatusBadge status={status} /> }

export const amountColumn: OrderColumn = {
  title: 'Amount',
  end: true,
  place: 'corner',
  cell: ({ amount }) => money.text(amount),
}

/** Orders stay when their owner is deleted. */
export function Owner({ order: { user_id: id } }: { readonly order: KnownOrder }) {
  if (id === null) return <span class="muted">Deleted user</span>
  const name = <bdi>{names.value.get(id) ?? `User ${id}`}</bdi>
  return seesAll.value ? <a href={href('users', id)}>{name}</a> : name
}

const statuses: Readonly<Record<KnownOrder['status'], readonly [string, string]>> = {
  pending_payment: ['warn', 'Waiting for payment'],
  shipped: ['good', 'Paid and shipped'],
  cancelled: ['bad', 'Cancelled'],
}

export function StatusBadge({ status }: { readonly status: KnownOrder['status'] }) {
  const [tone, text] = statuses[status]
  return <span class={`badge ${tone}`}>{text}</span>
}
