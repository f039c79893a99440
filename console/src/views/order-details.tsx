import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { useAction, useReading } from '../parts/action.tsx'
import { Confirm } from '../parts/confirm.tsx'
import { Fact } from '../parts/fact.tsx'
import { Icon } from '../parts/icon.tsx'
import { Notice } from '../parts/notice.tsx'
import { Loading } from '../parts/table.tsx'
import { Age } from '../parts/time.tsx'
import { money } from '../state/currency.ts'
import { toast } from '../state/messages.ts'
import { act, cancelled, type KnownOrder, type OrderContents, readContents } from '../state/orders.ts'
import { ofThisVisit } from '../state/pages.ts'

interface Props {
  readonly order: KnownOrder
  readonly onChange: (order: KnownOrder) => void
}

/** What is in an order, where it is, and what can be done with it: its links, nothing else. */
export function OrderDetails({ order, onChange }: Props) {
  const { id, status } = order
  const contents = useSignal<OrderContents | undefined>(undefined)
  const overtaken = useSignal<string | undefined>(undefined)
  const cancelling = useSignal(false)
  const reading = useReading()
  const paying = useAction()
  useEffect(() => {
    if (status === 'cancelled') return
    reading.run(
      () => readContents(order),
      read => {
        if (read !== undefined) contents.value = read
        else {
          overtaken.value = 'This order was cancelled meanwhile.'
          onChange(cancelled(order))
        }
      },
    )
  }, [id, status])

  const run = async (action: 'pay' | 'cancel') => {
    const outcome = await ofThisVisit(act(order, action))
    overtaken.value = outcome.overtaken
    if (outcome.overtaken === undefined) toast(`Order ${id} is ${action === 'pay' ? 'paid' : 'cancelled'}`)
    onChange(outcome.order)
  }
  const { pay, cancel } = order.links
  return (
    <div class="order-details">
      {overtaken.value !== undefined && (
        <div class="notice warn" role="alert">
          <Icon name="warning" />
          <p>{overtaken.value}</p>
        </div>
      )}
      <Notice problem={reading.problem} onAgain={reading.again} />
      {contents.value === undefined && reading.busy && <Loading />}
      {contents.value !== undefined && <Contents order={order} {...contents.value} />}
      <Notice problem={paying.problem} onAgain={paying.again} />
      {(pay || cancel) && (
        <div class="actions">
          {pay && (
            <button
              type="button"
              class="primary"
              aria-disabled={paying.busy} // a disabled button would lose the focus
              onClick={() => paying.run(() => run('pay'))}
            >
              {paying.busy ? 'Paying…' : `Pay ${money.text(order.amount)}`}
            </button>
          )}
          {cancel && (
            <button
              type="button"
              class="danger"
              onClick={() => {
                cancelling.value = true
              }}
            >
              Cancel the order
            </button>
          )}
        </div>
      )}
      {cancelling.value && (
        <Confirm
          title={`Cancel order ${id}?`}
          verb="Cancel the order"
          onClose={() => {
            cancelling.value = false
          }}
          work={() => run('cancel')}
        >
          The order will be gone. This cannot be undone.
        </Confirm>
      )}
    </div>
  )
}

function Contents({ order, items, tracking }: OrderContents & { readonly order: KnownOrder }) {
  return (
    <>
      <table class="lines">
        <caption class="visually-hidden">Items</caption>
        <thead>
          <tr>
            {['Item', 'Quantity', 'Each', 'Together'].map((title, index) => (
              <th scope="col" key={title} class={index > 0 ? 'end' : ''}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {items.map(({ id, name, quantity, price }) => (
            <tr key={id}>
              <td>
                <bdi>{name}</bdi>
              </td>
              <td class="end number">{quantity}</td>
              <td class="end number">{money.text(price)}</td>
              <td class="end number">{money.text(quantity * price)}</td>
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row" colSpan={3}>
              Total
            </th>
            <td class="end number">{money.text(order.amount)}</td>
          </tr>
        </tfoot>
      </table>
      {tracking !== undefined && (
        <dl class="facts">
          <Fact name="Paid and shipped">
            <Age of={tracking.shipped_at} />
          </Fact>
          <Fact name="Carrier">{tracking.carrier}</Fact>
          <Fact name="Tracking number">{tracking.number}</Fact>
        </dl>
      )}
    </>
  )
}
