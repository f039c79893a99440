/** Such as "5 minutes ago". */
export function ageOf(instant: Date, at: number): string {
  const seconds = (at - instant.getTime()) / 1000
  const unit = units.find(([, length]) => seconds >= length)
  return unit === undefined ? 'just now' : relative.format(-Math.floor(seconds / unit[1]), unit[0])
}

const units = [
  ['year', 31_536_000],
  ['month', 2_592_000],
  ['week', 604_800],
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
] as const

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })
