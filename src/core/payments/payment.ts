export interface Payment {
  readonly id: number
  readonly amountCents: number
  /** The order that this payment paid, if any. */
  readonly orderId: number | null
  readonly createdAt: string
}

export const mostCents = 100_000_000_000_000
