/** Parses an ISO-8601 date and time into the one format that the store uses: 2026-01-31T12:00:00.000Z. */
export function dateTimeOf(value: unknown): string {
  const [
    ,
    date = '',
    hours = '',
    minutes = '',
    seconds = '00',
    fraction = '',
    sign,
    offsetHours = '',
    offsetMinutes = '',
  ] = (typeof value === 'string' && pattern.exec(value)) || []
  const offset = (sign === '-' ? -1 : 1) * (Number(offsetHours) * 60 + Number(offsetMinutes))
  const inRange = Number(hours) < 24 && Number(minutes) < 60 && Number(seconds) < 60 && Math.abs(offset) < 1440
  // Digits after the milliseconds are cut off. Rounding could move the time to the next second.
  const local = new Date(`${date}T${hours}:${minutes}:${seconds}.${fraction.slice(0, 3).padEnd(3, '0')}Z`)
  // JavaScript would turn 31 February into a day in March, so the date is compared with the input.
  if (inRange && Number(offsetMinutes) < 60 && local.toJSON()?.startsWith(date) && date !== '') {
    const instant = new Date(local.getTime() - offset * 60_000)
    const year = instant.getUTCFullYear()
    if (year >= 0 && year <= 9999) return instant.toISOString()
  }
  throw new TypeError('DateTime must be an ISO-8601 date and time with an offset or Z, such as 2026-01-31T12:00:00Z')
}

const pattern = /^(\d{4}-\d\d-\d\d)T(\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?(?:Z|([+-])(\d\d):?(\d\d))$/
