import { useSignal } from '@preact/signals'
import { api } from '../client.ts'
import { usePages } from '../parts/pages.tsx'
import { type Column, Listing } from '../parts/table.tsx'
import { Age } from '../parts/time.tsx'
import { money } from '../state/currency.ts'
import type { KnownOrder } from '../state/orders.ts'
import type { Page, ReadList } from '../state/pages.ts'
import { type OrderPayment, orderPaymentsOf } from '../state/payments.ts'
import { href } from '../state/route.ts'
import { postsOf, type UserPost } from '../state/users.ts'
import { amountColumn, orderColumn, placedColumn, statusColumn } from './order-columns.tsx'

interface SectionProps<Item> {
  readonly title: string
  readonly columns: readonly Column<Item>[]
  readonly list: ReadList<Item>
  /** What is said if there is nothing. */
  readonly empty: string
}

function Section<Item extends { readonly id: number }>({ title, columns, list, empty }: SectionProps<Item>) {
  const paged = usePages({ kept: useSignal<Page<Item> | undefined>(undefined), filter: '', size: 5, list })
  return (
    <section class="part" aria-label={title}>
      <h2>{title}</h2>
      <Listing caption={title} columns={columns} paged={paged} empty={<p class="muted">{empty}</p>} />
    </section>
  )
}

/** The orders of a user, newest first. */
export function OrdersOf({ id }: { readonly id: number }) {
  return (
    <Section<KnownOrder>
      title="Orders"
      columns={[orderColumn, placedColumn, statusColumn, amountColumn]}
      list={options => api.orders.list(id, { ...options, sort: '-id' })}
      empty="No orders yet."
    />
  )
}

const paymentColumns: readonly Column<OrderPayment>[] = [
  { title: 'For', cell: ({ id }) => <a href={href('orders', id)}>Order {id}</a> },
  { title: 'Paid', labelled: true, cell: ({ paidAt }) => <Age of={paidAt} /> },
  { title: 'Amount', end: true, place: 'corner', cell: ({ amount }) => money.text(amount) },
]

/** What a user paid for orders. */
export function PaymentsOf({ id }: { readonly id: number }) {
  return (
    <Section
      title="Payments for orders"
      columns={paymentColumns}
      list={orderPaymentsOf(id)}
      empty="No order is paid yet."
    />
  )
}

const postColumns: readonly Column<UserPost>[] = [
  {
    title: 'Title',
    cell: ({ id, title }) => (
      <a href={href('posts', id)}>
        <bdi>{title}</bdi>
      </a>
    ),
  },
  { title: 'Published', cell: ({ publishedAt }) => publishedAt && <Age of={publishedAt} /> },
  { title: 'Likes', end: true, labelled: true, cell: ({ likes }) => likes },
  { title: 'Comments', end: true, labelled: true, cell: ({ commentCount }) => commentCount },
]

interface PostsProps {
  readonly id: number
  readonly onJoined: (at: string) => void
}

/** The posts of a user, newest first. */
export function PostsOf({ id, onJoined }: PostsProps) {
  return <Section title="Posts" columns={postColumns} list={postsOf(id, onJoined)} empty="Nothing written yet." />
}
