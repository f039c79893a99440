import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { OrderStatus } from '../../../client/src/index.ts'
import { api } from '../client.ts'
import { Empty } from '../parts/empty.tsx'
import { Head } from '../parts/head.tsx'
import { Icon } from '../parts/icon.tsx'
import { usePages } from '../parts/pages.tsx'
import { type Column, Listing, Loading } from '../parts/table.tsx'
import { UserPicker } from '../parts/user-picker.tsx'
import { readNames } from '../state/names.ts'
import { type KnownOrder, orderPage } from '../state/orders.ts'
import { filterBy, query } from '../state/query.ts'
import { resuming, seesAll, visits, who } from '../state/session.ts'
import { amountColumn, orderColumn, ownerColumn, placedColumn, statusColumn } from './order-columns.tsx'
import { OrderDetails } from './order-details.tsx'
import { OrderForm } from './order-form.tsx'

/** All orders, for those who may see them. Other users see their own. */
export function Orders() {
  return resuming.value ? <Loading /> : <OrderList key={visits.value} />
}

function OrderList() {
  const opened = useSignal<number | undefined>(undefined)
  const ordering = useSignal(false)
  const status = statusIn(query.value.get('status'))
  const chosen = seesAll.value ? Number(query.value.get('user')) || undefined : who.value?.id
  const paged = usePages({
    kept: orderPage,
    filter: `${status} ${chosen}`,
    size: 10,
    list: given => {
      const options = { ...given, sort: '-id' as const, ...(status !== '' && { status }) }
      return chosen === undefined ? api.orders.all(options) : api.orders.list(chosen, options)
    },
  })
  const owners = paged.page?.items.map(({ user_id }) => user_id)
  useEffect(() => {
    readNames([...(owners ?? []), chosen ?? null]).catch(() => {}) // then their numbers are shown
  }, [owners?.join(), chosen])
  const toggle: Column<KnownOrder> = {
    title: 'Items',
    untitled: true,
    end: true,
    place: 'last',
    cell: ({ id }) => {
      const isOpen = opened.value === id
      return (
        <button
          type="button"
          class="quiet toggle"
          aria-expanded={isOpen}
          aria-label={`Items of order ${id}`}
          onClick={() => {
            opened.value = isOpen ? undefined : id
          }}
        >
          Items <Icon name="down" />
        </button>
      )
    },
  }
  const everybody = [orderColumn, ownerColumn, placedColumn, statusColumn, amountColumn, toggle]
  return (
    <>
      <Head
        title="Orders"
        text={`Follow ${seesAll.value ? 'all' : 'your'} orders, the newest first. Open one to see its items, to pay it or to cancel it.`}
      >
        <button
          type="button"
          class="primary"
          onClick={() => {
            ordering.value = true
          }}
        >
          <Icon name="plus" /> New order
        </button>
      </Head>
      <div class="toolbar">
        <div class="field short">
          <label for="orders-status">Status</label>
          <select id="orders-status" value={status} onChange={event => filterBy({ status: event.currentTarget.value })}>
            <option value="">All</option>
            <option value="pending_payment">Waiting for payment</option>
            <option value="shipped">Paid and shipped</option>
          </select>
        </div>
        {seesAll.value && (
          <UserPicker
            label="Orders of"
            placeholder="Everybody"
            picked={chosen === undefined ? undefined : { id: chosen, name: `User ${chosen}` }}
            onPick={picked => filterBy({ user: picked === undefined ? '' : String(picked.id) })}
          />
        )}
      </div>
      <Listing
        caption="Orders, newest first"
        columns={seesAll.value ? everybody : everybody.filter(column => column !== ownerColumn)}
        paged={paged}
        below={order => opened.value === order.id && <OrderDetails order={order} onChange={paged.change} />}
        empty={
          <Empty icon="orders" title="No orders here">
            <p>{status === '' ? 'Nothing was ordered yet.' : 'No order has this status.'}</p>
          </Empty>
        }
      />
      {ordering.value && (
        <OrderForm
          owner={chosen ?? who.value?.id}
          onClose={() => {
            ordering.value = false
          }}
          onCreated={order => {
            // A filter that hides the new order would be a riddle.
            const isHidden = status === 'shipped' || (chosen !== undefined && chosen !== order.user_id)
            if (isHidden) filterBy({ status: '', user: '' })
            else paged.add(order)
          }}
        />
      )}
    </>
  )
}

function statusIn(text: string | null): OrderStatus | '' {
  return text === 'pending_payment' || text === 'shipped' ? text : ''
}
