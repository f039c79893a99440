import { useSignal } from '@preact/signals'
import type { Order, OrderLink, Tracking } from '../../../client/src/index.ts'
import { api } from '../client.ts'
import { useAction } from '../parts/action.tsx'
import { Confirm } from '../parts/confirm.tsx'
import { Notice } from '../parts/notice.tsx'
import { toast } from '../state/messages.ts'

interface Props {
  readonly order: Order
  /** Called with the current order, or with nothing if it was cancelled. */
  readonly onChange: (order: Order | undefined) => void
}

const names: Readonly<Record<string, string>> = { self: 'Refresh', pay: 'Pay', cancel: 'Cancel', track: 'Track' }

const statuses: Readonly<Record<string, readonly [string, string]>> = {
  pending_payment: ['warn', 'Waiting for payment'],
  shipped: ['good', 'Shipped'],
}

const amounts = new Intl.NumberFormat('en')

/** An order with one button for each of its links. */
export function OrderCard({ order, onChange }: Props) {
  const { id, status, amount, links } = order
  const tracking = useSignal<Tracking | undefined>(undefined)
  const cancelling = useSignal(false)
  const { busy, problem, run, again } = useAction()
  const [tone, text] = statuses[status] ?? ['', status]
  const follow = async (name: Exclude<OrderLink, 'cancel'>) => {
    if (name === 'track') tracking.value = await api.orders.follow(order, name)
    else if (name === 'self') onChange(await api.orders.follow(order, name))
    else {
      onChange((await api.orders.follow(order, name)).order)
      toast(`Order ${id} is paid`)
    }
  }
  const press = (name: OrderLink) => {
    if (name === 'cancel') cancelling.value = true
    else run(() => follow(name))
  }
  return (
    <li class="card order">
      <h2>
        Order {id} <span class={`badge ${tone}`}>{text}</span>
      </h2>
      <fieldset class="actions" aria-label={`Order ${id}`}>
        {(Object.keys(links) as OrderLink[]).map(name => (
          <button
            type="button"
            key={name}
            class={name === 'pay' ? 'primary' : name === 'cancel' ? 'danger' : ''}
            aria-disabled={busy} // a disabled button would lose the focus
            onClick={() => press(name)}
          >
            {names[name] ?? name}
          </button>
        ))}
      </fieldset>
      <p class="amount">{amounts.format(amount)}</p>
      {tracking.value !== undefined && (
        <dl class="facts">
          <Fact name="Carrier">{tracking.value.carrier}</Fact>
          <Fact name="Number">{tracking.value.number}</Fact>
          <Fact name="Shipped">{new Date(tracking.value.shipped_at).toLocaleString()}</Fact>
        </dl>
      )}
      <Notice problem={problem} onAgain={again} />
      {cancelling.value && (
        <Confirm
          title={`Cancel order ${id}?`}
          verb="Cancel the order"
          onClose={() => {
            cancelling.value = false
          }}
          work={async () => {
            await api.orders.follow(order, 'cancel')
            onChange(undefined)
            toast(`Order ${id} is cancelled`)
          }}
        >
          The order will be gone. This cannot be undone.
        </Confirm>
      )}
    </li>
  )
}

function Fact({ name, children }: { readonly name: string; readonly children: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}
