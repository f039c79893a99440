import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { useReading } from '../parts/action.tsx'
import { Empty } from '../parts/empty.tsx'
import { useTitle } from '../parts/head.tsx'
import { Notice } from '../parts/notice.tsx'
import { Loading } from '../parts/table.tsx'
import { Age } from '../parts/time.tsx'
import { money } from '../state/currency.ts'
import { readNames } from '../state/names.ts'
import { cancelled, findOrder, type KnownOrder } from '../state/orders.ts'
import { href } from '../state/route.ts'
import { resuming, visits } from '../state/session.ts'
import { Owner, StatusBadge } from './order-columns.tsx'
import { OrderDetails } from './order-details.tsx'

/** One order at an address of its own. */
export function OrderPage({ id }: { readonly id: string }) {
  return resuming.value ? <Loading /> : <OneOrder key={visits.value} id={Number(id)} />
}

function OneOrder({ id }: { readonly id: number }) {
  const order = useSignal<KnownOrder | 'absent' | undefined>(undefined)
  const reading = useReading()
  useTitle(`Order ${id}`)
  useEffect(() => {
    const read = () => {
      const known = order.peek()
      reading.run(
        () => findOrder(id),
        found => {
          if (order.peek() !== known) return // it was paid or cancelled here while the answer was under way
          order.value = found ?? (known === undefined || known === 'absent' ? 'absent' : cancelled(known))
          readNames([found?.user_id ?? null]).catch(() => {}) // then its number is shown
        },
      )
    }
    read()
    addEventListener('focus', read) // somebody else may have paid or cancelled it meanwhile
    return () => removeEventListener('focus', read)
  }, [])
  const shown = order.value
  return (
    <>
      <p class="back">
        <a href={href('orders')}>All orders</a>
      </p>
      <Notice problem={reading.problem} onAgain={reading.again} />
      {(shown === undefined || shown === 'absent') && <h1 class="visually-hidden">Order {id}</h1>}
      {shown === undefined && reading.problem === undefined && <Loading />}
      {shown === 'absent' && (
        <Empty icon="orders" title="There is no such order">
          <p>It was cancelled, or it is the order of somebody else.</p>
        </Empty>
      )}
      {shown !== undefined && shown !== 'absent' && (
        <article class="card panel" aria-label={`Order ${id}`}>
          <div class="order-head">
            <h1>Order {id}</h1>
            <StatusBadge status={shown.status} />
            <span class="amount">{money.text(shown.amount)}</span>
            <p class="muted">
              <Owner order={shown} /> placed it <Age of={shown.created_at} />
            </p>
          </div>
          <OrderDetails
            order={shown}
            onChange={changed => {
              order.value = changed
            }}
          />
        </article>
      )}
    </>
  )
}
