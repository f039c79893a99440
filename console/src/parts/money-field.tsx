import { money } from '../state/currency.ts'
import { Field } from './field.tsx'

interface Props {
  readonly label: string
  /** As it is typed. */
  readonly text: string
  readonly least: number
  readonly most: number
  /** Decimals beyond those of the currency. */
  readonly decimals?: number
  readonly onInput: (text: string) => void
}

/** An amount as people write it. The browser says at the field what is wrong with it, and does not send it. */
export function MoneyField({ label, text, least, most, decimals = 0, onInput }: Props) {
  const wrong = (typed: string) => {
    const amount = money.amountOf(typed, decimals)
    if (typed === '' || (amount !== undefined && amount >= least && amount <= most)) return ''
    const kind = money.amountOf('0.1', decimals) === undefined ? 'a whole amount' : 'an amount'
    return `Write ${kind} such as ${money.example}, from ${money.text(least)} to ${money.text(most)}.`
  }
  return (
    <Field
      label={money.unit === '' ? label : `${label} (${money.unit})`}
      inputMode="decimal"
      autocomplete="off"
      value={text}
      placeholder={money.example}
      required
      onInput={event => {
        const { value } = event.currentTarget
        event.currentTarget.setCustomValidity(wrong(value))
        onInput(value)
      }}
    />
  )
}
