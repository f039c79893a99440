import { ageOf } from '../state/age.ts'
import { now } from '../state/now.ts'

const exact = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'medium' })

/** How long ago something happened, as everywhere in the console. Its exact time is shown as a tooltip. */
export function Age({ of }: { readonly of: string | number }) {
  const date = new Date(of)
  return (
    <time dateTime={date.toISOString()} title={exact.format(date)}>
      {ageOf(date, now.value)}
    </time>
  )
}
