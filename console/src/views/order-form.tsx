import { useSignal } from '@preact/signals'
import type { NewItem } from '../../../client/src/index.ts'
import { api } from '../client.ts'
import { useAction } from '../parts/action.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { Field } from '../parts/field.tsx'
import { Icon } from '../parts/icon.tsx'
import { Notice } from '../parts/notice.tsx'
import { toast } from '../state/messages.ts'

interface Props {
  readonly userId: number
  readonly onClose: () => void
  readonly onCreated: () => void
}

interface Line extends NewItem {
  readonly key: number
}

const amounts = new Intl.NumberFormat('en')
const mostItems = 100

/** The price starts empty, because an order with an amount of zero is refused. */
const emptyLine: NewItem = { name: '', quantity: 1, price: Number.NaN }

/** The text of a number field: empty without a number. */
const shown = (value: number) => (Number.isNaN(value) ? '' : value)

export function OrderForm({ userId, onClose, onCreated }: Props) {
  const lines = useSignal<readonly Line[]>([{ key: 0, ...emptyLine }])
  const { busy, problem, run, again } = useAction()
  const change = (key: number, changes: Partial<NewItem>) => {
    lines.value = lines.value.map(line => (line.key === key ? { ...line, ...changes } : line))
  }
  const total = lines.value.reduce((sum, { quantity, price }) => sum + quantity * price, 0)
  return (
    <Dialog title="New order" onClose={onClose} wide>
      <form
        class="fields"
        onSubmit={event => {
          event.preventDefault()
          run(async () => {
            const items = lines.peek().map(({ name, quantity, price }) => ({ name, quantity, price }))
            const { id } = await api.orders.create(userId, items)
            onClose()
            toast(`Order ${id} is placed`)
            onCreated()
          })
        }}
      >
        <Notice problem={problem} onAgain={again} />
        <fieldset class="items">
          <legend class="visually-hidden">Items</legend>
          {lines.value.map(({ key, name, quantity, price }) => (
            <div class="item" key={key}>
              <Field
                label="Item"
                value={name}
                placeholder="Brass gear, 40 teeth"
                required
                onInput={event => change(key, { name: event.currentTarget.value })}
              />
              <Field
                label="Quantity"
                type="number"
                min={1}
                max={10_000}
                value={shown(quantity)}
                required
                onInput={event => change(key, { quantity: event.currentTarget.valueAsNumber })}
              />
              <Field
                label="Price each"
                type="number"
                min={0}
                max={1_000_000_000}
                value={shown(price)}
                placeholder="120"
                required
                onInput={event => change(key, { price: event.currentTarget.valueAsNumber })}
              />
              <button
                type="button"
                class="quiet icon-only"
                aria-label={`Remove ${name || 'this item'}`}
                disabled={lines.value.length === 1}
                onClick={() => {
                  lines.value = lines.value.filter(line => line.key !== key)
                }}
              >
                <Icon name="trash" />
              </button>
            </div>
          ))}
        </fieldset>
        <div class="actions">
          <button
            type="button"
            disabled={lines.value.length === mostItems}
            onClick={() => {
              const key = Math.max(...lines.value.map(line => line.key)) + 1
              lines.value = [...lines.value, { key, ...emptyLine }]
            }}
          >
            <Icon name="plus" /> Another item
          </button>
        </div>
        <div class="actions end">
          Total <span class="amount">{Number.isNaN(total) ? '–' : amounts.format(total)}</span>
          <button type="submit" class="primary" disabled={busy}>
            Place the order
          </button>
        </div>
      </form>
    </Dialog>
  )
}
