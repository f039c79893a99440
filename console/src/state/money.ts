/** How the service counts money: `digits` is 2 where it counts cents. */
export interface Currency {
  readonly code: string
  readonly digits: number
}

export interface Money {
  /** Such as "EUR". Empty without a currency. */
  readonly unit: string
  /** An amount as it is typed. */
  readonly example: string
  /** The decimals of a payment beyond those of an order. */
  readonly decimals: number
  /** An amount of the service for people: with `EUR` and 2 digits, 3607 is "€36.07". Without a currency, the number. */
  text(amount: number): string
  /** The amount that a person typed: with 2 digits, "36.07" is 3607. Absent if it is none. */
  amountOf(typed: string, decimals?: number): number | undefined
}

export function moneyIn(currency: Currency | undefined): Money {
  const { code, digits } = currency ?? { code: undefined, digits: 0 }
  // Payments may have two decimals more than orders.
  const format = new Intl.NumberFormat(
    'en',
    code === undefined
      ? { minimumFractionDigits: 2, trailingZeroDisplay: 'stripIfInteger' }
      : { style: 'currency', currency: code, minimumFractionDigits: digits, maximumFractionDigits: digits + 2 },
  )
  return {
    unit: code ?? '',
    example: digits === 0 ? '120' : `36.${'07'.padEnd(digits, '0').slice(0, digits)}`,
    decimals: code === undefined ? 2 : 0,
    text: amount => format.format(amount / 10 ** digits),
    amountOf(typed, decimals = 0) {
      const [, whole, fraction = ''] = /^\s*(\d{1,13})(?:[.,](\d+))?\s*$/.exec(typed) ?? []
      if (whole === undefined || fraction.length > digits + decimals) return undefined
      return Number(whole + fraction.padEnd(digits + decimals, '0')) / 10 ** decimals
    },
  }
}
