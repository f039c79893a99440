import { signal, useSignal } from '@preact/signals'
import type { MadePayment } from '../../../client/src/index.ts'
import { api } from '../client.ts'
import { useAction } from '../parts/action.tsx'
import { Empty } from '../parts/empty.tsx'
import { Field } from '../parts/field.tsx'
import { Head } from '../parts/head.tsx'
import { Icon } from '../parts/icon.tsx'
import { Notice } from '../parts/notice.tsx'
import { Age } from '../parts/time.tsx'
import { visits } from '../state/session.ts'

interface Receipt extends MadePayment {
  readonly at: string
  readonly sent: number
}

const mostReceipts = 50

/** Payments that were sent from this page, newest first. */
const receipts = signal<readonly Receipt[]>([])

visits.subscribe(() => {
  receipts.value = [] // those of the former user
})

const amounts = new Intl.NumberFormat('en', { minimumFractionDigits: 2 })

/** Sends payments. Repeating a key shows that nothing is paid twice. */
export function Payments() {
  const amount = useSignal('49.90')
  const key = useSignal<string>(crypto.randomUUID())
  const { busy, problem, run, again } = useAction()
  const pay = (sent: number, usedKey: string) =>
    run(async () => {
      const visit = visits.peek()
      const made = await api.payments.pay(sent, { key: usedKey })
      if (visits.peek() !== visit) return
      receipts.value = [{ ...made, sent, at: new Date().toISOString() }, ...receipts.peek()].slice(0, mostReceipts)
    })
  return (
    <>
      <Head title="Payments" text="A key identifies a payment. Send it as often as you like: it is paid once." />
      <form
        class="card panel pay-form"
        onSubmit={event => {
          event.preventDefault()
          pay(Number(amount.peek()), key.peek())
        }}
      >
        <Field
          label="Amount"
          type="number"
          min="0.01"
          step="0.01"
          value={amount.value}
          required
          onInput={event => {
            amount.value = event.currentTarget.value
          }}
        />
        <div class="with-button">
          <Field
            label="Idempotency-Key"
            class="mono"
            value={key.value}
            pattern="[!-~]{1,255}"
            maxLength={255}
            required
            onInput={event => {
              key.value = event.currentTarget.value
            }}
          />
          <button
            type="button"
            class="icon-only tall"
            aria-label="New key"
            onClick={() => {
              key.value = crypto.randomUUID()
            }}
          >
            <Icon name="refresh" />
          </button>
        </div>
        <div class="actions">
          <button type="submit" class="primary" disabled={busy}>
            {busy ? 'Paying…' : 'Pay'}
          </button>
        </div>
      </form>
      <Notice problem={problem} onAgain={again} />
      <Receipts busy={busy} onAgain={({ sent, key: usedKey }) => pay(sent, usedKey)} />
    </>
  )
}

function Receipts({ busy, onAgain }: { readonly busy: boolean; readonly onAgain: (receipt: Receipt) => void }) {
  if (receipts.value.length === 0) {
    return (
      <Empty icon="payments" title="No payments from this page yet">
        <p>Send one, then send it again with the same key, with any amount.</p>
      </Empty>
    )
  }
  return (
    <ol class="rows" aria-label="Answers, newest first" aria-live="polite">
      {receipts.value.map(receipt => (
        <li class="card receipt" key={receipt.at + receipt.key}>
          <h2>
            Payment {receipt.payment.id}
            {receipt.replayed ? (
              <span class="badge accent">Replayed: nothing was paid again</span>
            ) : (
              <span class="badge good">Paid</span>
            )}
          </h2>
          <div class="actions">
            <button type="button" aria-disabled={busy} onClick={() => onAgain(receipt)}>
              Send again with this key
            </button>
          </div>
          <p>
            <span class="amount">{amounts.format(receipt.payment.amount)}</span>{' '}
            {receipt.sent !== receipt.payment.amount && (
              <span class="muted">although {amounts.format(receipt.sent)} was sent</span>
            )}
          </p>
          <p class="muted mono">{receipt.key}</p>
          <p class="muted hint">
            Answered <Age of={receipt.at} />, paid <Age of={receipt.payment.created_at} />
          </p>
        </li>
      ))}
    </ol>
  )
}
