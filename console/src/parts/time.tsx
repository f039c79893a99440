import { ageOf, now } from '../state/now.ts'

/** The age of an event. Its exact time is shown as a tooltip. */
export function Age({ of }: { readonly of: string }) {
  return (
    <time dateTime={of} title={new Date(of).toLocaleString()}>
      {ageOf(of, now.value)}
    </time>
  )
}
