import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Order, OrderStatus } from '../../../client/src/index.ts'
import { api } from '../client.ts'
import { useReading } from '../parts/action.tsx'
import { Empty } from '../parts/empty.tsx'
import { Head } from '../parts/head.tsx'
import { Icon } from '../parts/icon.tsx'
import { Notice } from '../parts/notice.tsx'
import { askToSignIn, visits, who } from '../state/session.ts'
import { OrderCard } from './order.tsx'
import { OrderForm } from './order-form.tsx'

const pageSize = 10

/** The orders of the signed-in user, or of the user with the entered id. */
export function Orders() {
  const chosen = useSignal<number | undefined>(undefined)
  /** What is being typed: without it, an answer that arrives meanwhile would put the former number back. */
  const typed = useSignal<string | undefined>(undefined)
  const status = useSignal<OrderStatus | ''>('')
  const list = useSignal<{ readonly items: readonly Order[]; readonly more: boolean } | undefined>(undefined)
  const ordering = useSignal(false)
  const { busy, problem, run, again } = useReading()
  const userId = chosen.value ?? who.value?.id

  const clear = () => {
    list.value = undefined
  }
  const read = (after?: number) => {
    if (userId === undefined) return run(async () => undefined, clear)
    const options = { limit: pageSize, ...(status.value !== '' && { status: status.value }), ...(after && { after }) }
    return run(
      () => api.orders.list(userId, options).first(),
      ({ items, more }) => {
        list.value = { items: after === undefined ? items : [...(list.value?.items ?? []), ...items], more }
      },
    )
  }
  const replace = (id: number, changed: Order | undefined) => {
    if (list.value === undefined) return
    const items = list.value.items.flatMap(order =>
      order.id !== id ? [order] : changed === undefined ? [] : [changed],
    )
    list.value = { ...list.value, items }
  }
  useEffect(() => {
    clear()
    read()
  }, [userId, status.value, visits.value])

  return (
    <>
      <Head title="Orders" text="Each order says what can be done with it. Its buttons are its links, nothing else.">
        {userId !== undefined && (
          <button
            type="button"
            class="primary"
            onClick={() => {
              ordering.value = true
            }}
          >
            <Icon name="plus" /> New order
          </button>
        )}
      </Head>
      <div class="toolbar">
        <div class="field short">
          <label for="orders-of">Orders of user</label>
          <input
            id="orders-of"
            type="number"
            min={1}
            value={typed.value ?? userId ?? ''}
            placeholder="Number"
            onInput={event => {
              typed.value = event.currentTarget.value
            }}
            onChange={event => {
              chosen.value = Number(event.currentTarget.value) || undefined
              typed.value = undefined
            }}
            onBlur={() => {
              typed.value = undefined // no change is told if the former number was typed again
            }}
          />
        </div>
        <div class="field short">
          <label for="orders-status">Status</label>
          <select
            id="orders-status"
            value={status.value}
            onChange={event => {
              status.value = event.currentTarget.value as OrderStatus | ''
            }}
          >
            <option value="">All</option>
            <option value="pending_payment">Waiting for payment</option>
            <option value="shipped">Shipped</option>
          </select>
        </div>
      </div>
      <Notice problem={problem} onAgain={again} />
      {userId === undefined && (
        <Empty icon="orders" title="Whose orders?">
          <p>Sign in to see your own, or enter the number of a user.</p>
          <button type="button" onClick={() => askToSignIn('wanted')}>
            Sign in
          </button>
        </Empty>
      )}
      {list.value?.items.length === 0 && (
        <Empty icon="orders" title="No orders here">
          <p>
            {status.value === '' ? 'This user has not ordered anything yet.' : 'No order of this user has this status.'}
          </p>
        </Empty>
      )}
      <ul class="rows">
        {list.value?.items.map(order => (
          <OrderCard key={order.id} order={order} onChange={changed => replace(order.id, changed)} />
        ))}
      </ul>
      {list.value?.more && (
        <div class="more">
          <button type="button" disabled={busy} onClick={() => read(list.value?.items.at(-1)?.id)}>
            Show more orders
          </button>
        </div>
      )}
      {ordering.value && userId !== undefined && (
        <OrderForm
          userId={userId}
          onClose={() => {
            ordering.value = false
          }}
          onCreated={() => read()}
        />
      )}
    </>
  )
}
