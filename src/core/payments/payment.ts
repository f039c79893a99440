export interface Payment {
  readonly id: number
  readonly amountCents: number
  /** The order that it paid, if it paid one. */
  readonly orderId: number | null
  readonly createdAt: string
}

export const mostCents = 100_000_000_000_000
