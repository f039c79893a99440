import { signal } from '@preact/signals'

/** The current time, once a second, for countdowns and ages. Components that read it are rendered again. */
export const now = signal(Date.now())

setInterval(() => {
  if (!document.hidden) now.value = Date.now()
}, 1000)

const units = [
  ['year', 31_536_000],
  ['month', 2_592_000],
  ['week', 604_800],
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
] as const

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })

/** Such as "5 minutes ago". */
export function ageOf(instant: Date, at: number): string {
  const seconds = (at - instant.getTime()) / 1000
  const unit = units.find(([, length]) => seconds >= length)
  return unit === undefined ? 'just now' : relative.format(-Math.floor(seconds / unit[1]), unit[0])
}
