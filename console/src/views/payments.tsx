import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import { isDuetError, type MadePayment, type Payment } from '../../../client/src/index.ts'
import { api } from '../client.ts'
import { useAction } from '../parts/action.tsx'
import { Empty } from '../parts/empty.tsx'
import { Head } from '../parts/head.tsx'
import { Icon } from '../parts/icon.tsx'
import { MoneyField } from '../parts/money-field.tsx'
import { Notice } from '../parts/notice.tsx'
import { usePages } from '../parts/pages.tsx'
import { type Column, Listing, Loading } from '../parts/table.tsx'
import { Age } from '../parts/time.tsx'
import { money } from '../state/currency.ts'
import { ofThisVisit } from '../state/pages.ts'
import { paymentPage } from '../state/payments.ts'
import { href } from '../state/route.ts'
import { resuming, seesAll, visits } from '../state/session.ts'

/** All payments, for those who may see them, and a way to make one. Other users see their own. */
export function Payments() {
  return resuming.value ? <Loading /> : <PaymentList key={visits.value} />
}

const columns: readonly Column<Payment>[] = [
  { title: 'Payment', cell: ({ id }) => `Payment ${id}` },
  {
    title: 'For',
    cell: ({ order_id: id }) =>
      id === null ? <span class="muted">No order</span> : <a href={href('orders', id)}>Order {id}</a>,
  },
  { title: 'Paid', cell: ({ created_at }) => <Age of={created_at} /> },
  { title: 'Amount', end: true, place: 'corner', cell: ({ amount }) => money.text(amount) },
]

function PaymentList() {
  const paged = usePages({
    kept: paymentPage,
    filter: '',
    size: 10,
    list: options => api.payments.list({ ...options, sort: '-id' }),
  })
  return (
    <>
      <Head
        title="Payments"
        text={`Make a payment, and look through ${seesAll.value ? 'all' : 'your'} payments, the newest first.`}
      />
      <PayForm onPaid={paged.add} />
      <Listing
        caption="Payments, newest first"
        columns={columns}
        paged={paged}
        empty={
          <Empty icon="payments" title="No payments yet">
            <p>Payments of orders appear here, and those that you make above.</p>
          </Empty>
        }
      />
    </>
  )
}

/** Makes a payment. Sending it again shows that nothing is paid twice. */
function PayForm({ onPaid }: { readonly onPaid: (payment: Payment) => void }) {
  const text = useSignal('')
  /** The key of a payment that may have been made although its answer was lost. */
  const key = useSignal<string | undefined>(undefined)
  const made = useSignal<MadePayment | undefined>(undefined)
  const form = useRef<HTMLFormElement>(null)
  /** Whether the form was sent last, and not a payment once more. */
  const isOfForm = useRef(true)
  const { busy, problem, run, again } = useAction()
  const typed = () => money.amountOf(text.peek(), money.decimals)
  const pay = (amount: number, usedKey?: string) =>
    run(async () => {
      isOfForm.current = usedKey === undefined
      const known = usedKey ?? key.peek() // also that of the attempt before
      try {
        made.value = await ofThisVisit(api.payments.pay(amount, known === undefined ? {} : { key: known }))
      } catch (error) {
        if (isDuetError(error) && isOfForm.current) key.value = error.key
        throw error
      }
      if (isOfForm.current) {
        key.value = undefined
        if (typed() === made.value.payment.amount) text.value = '' // otherwise it is the next amount already
      }
      onPaid(made.value.payment)
    })
  return (
    <section class="card panel" aria-label="Make a payment">
      <form
        ref={form}
        class="pay-form"
        onSubmit={event => {
          event.preventDefault()
          const amount = typed()
          if (amount !== undefined) pay(amount)
        }}
      >
        <MoneyField
          label="Amount"
          text={text.value}
          least={10 ** -money.decimals}
          most={1_000_000_000_000}
          decimals={money.decimals}
          onInput={written => {
            text.value = written
          }}
        />
        <button type="submit" class="primary" disabled={busy}>
          {busy ? 'Paying…' : 'Pay'}
        </button>
        <p class="muted">For payments without an order. An order is paid on its own page.</p>
      </form>
      <Notice problem={problem} onAgain={() => (isOfForm.current ? form.current?.requestSubmit() : again())} />
      {made.value !== undefined && (
        <Receipt made={made.value} busy={busy} onAgain={({ payment, key: used }) => pay(payment.amount, used)} />
      )}
    </section>
  )
}

interface ReceiptProps {
  readonly made: MadePayment
  readonly busy: boolean
  readonly onAgain: (made: MadePayment) => void
}

function Receipt({ made, busy, onAgain }: ReceiptProps) {
  const { payment, replayed } = made
  return (
    <div class="notice good receipt" role="status">
      <Icon name="check" />
      <p>
        <strong>
          {replayed
            ? `This was payment ${payment.id} of ${money.text(payment.amount)} again: nothing was paid twice`
            : `Payment ${payment.id} of ${money.text(payment.amount)} is made`}
        </strong>
        {replayed
          ? 'The service knew its key and answered with the payment from before.'
          : 'A lost connection cannot charge you twice: each payment has a key of its own.'}
      </p>
      <button type="button" aria-disabled={busy} onClick={() => onAgain(made)}>
        Send it again
      </button>
    </div>
  )
}
