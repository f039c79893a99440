import { useSignal } from '@preact/signals'
import type { Order } from '../../../client/src/index.ts'
import { api } from '../client.ts'
import { useAction } from '../parts/action.tsx'
import { Field } from '../parts/field.tsx'
import { Form } from '../parts/form.tsx'
import { Icon } from '../parts/icon.tsx'
import { FormDialog } from '../parts/leave.tsx'
import { MoneyField } from '../parts/money-field.tsx'
import { type Picked, UserPicker } from '../parts/user-picker.tsx'
import { money } from '../state/currency.ts'
import { toast } from '../state/messages.ts'
import { names } from '../state/names.ts'
import { ofThisVisit } from '../state/pages.ts'
import { seesAll, who } from '../state/session.ts'

interface Props {
  /** The user for whom the order most likely is. */
  readonly owner: number | undefined
  readonly onClose: () => void
  readonly onCreated: (order: Order) => void
}

interface Line {
  readonly key: number
  readonly name: string
  readonly quantity: number
  /** As it is typed. */
  readonly price: string
}

const most = { items: 100, price: 1_000_000_000 }

const emptyLine = { name: '', quantity: 1, price: '' }

/** Places an order, also for another user by those who may. */
export function OrderForm({ owner, onClose, onCreated }: Props) {
  const known = owner === who.value?.id ? who.value?.name : names.value.get(owner ?? 0)
  const picked = useSignal<Picked | undefined>(
    owner === undefined ? undefined : { id: owner, name: known ?? `User ${owner}` },
  )
  const lines = useSignal<readonly Line[]>([{ key: 0, ...emptyLine }])
  const action = useAction()
  const change = (key: number, changes: Partial<Line>) => {
    lines.value = lines.value.map(line => (line.key === key ? { ...line, ...changes } : line))
  }
  const total = lines.value.reduce((sum, line) => sum + line.quantity * (money.amountOf(line.price) ?? Number.NaN), 0)
  const place = (userId: number) =>
    action.run(async () => {
      const items = lines
        .peek()
        .map(({ name, quantity, price }) => ({ name, quantity, price: money.amountOf(price) ?? Number.NaN }))
      const order = await ofThisVisit(api.orders.create(userId, items))
      onClose()
      toast(`Order ${order.id} is placed`)
      onCreated(order)
    })
  return (
    <FormDialog title="New order" onClose={onClose} wide>
      <Form action={action} onSubmit={() => picked.value !== undefined && place(picked.value.id)}>
        {seesAll.value && (
          <UserPicker
            label="For whom"
            placeholder="Name or e-mail"
            picked={picked.value}
            required
            onPick={chosen => {
              picked.value = chosen
            }}
          />
        )}
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
                defaultValue={1}
                value={Number.isNaN(quantity) ? '' : quantity}
                required
                onInput={event => change(key, { quantity: event.currentTarget.valueAsNumber })}
              />
              <MoneyField
                label="Price each"
                text={price}
                least={0}
                most={most.price}
                onInput={text => change(key, { price: text })}
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
            disabled={lines.value.length === most.items}
            onClick={() => {
              const key = Math.max(...lines.value.map(line => line.key)) + 1
              lines.value = [...lines.value, { key, ...emptyLine }]
            }}
          >
            <Icon name="plus" /> Another item
          </button>
        </div>
        <div class="actions end">
          Total <span class="amount">{Number.isNaN(total) ? '–' : money.text(total)}</span>
          <button type="submit" class="primary" disabled={action.busy}>
            Place the order
          </button>
        </div>
      </Form>
    </FormDialog>
  )
}
