import { ageOf, now } from '../state/now.ts'

/** How long ago something was; the exact time is shown when the pointer rests on it. */
export function Age({ of }: { readonly of: string }) {
  return (
    <time dateTime={of} title={new Date(of).toLocaleString()}>
      {ageOf(of, now.value)}
    </time>
  )
}
