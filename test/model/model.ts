/** The caller. The two users of a run own its orders; the admin owns nothing. */
export type Caller = 'anonymous' | 'ann' | 'bob' | 'admin'
export type Owner = 'ann' | 'bob'
export type Policy = 'open' | 'enforced'

export interface Item {
  readonly name: string
  readonly quantity: number
  readonly price: number
}

/** An answer, real or expected. Links are stored by relation. */
export interface Answer {
  readonly status: number
  readonly body: unknown
  readonly location?: string
  readonly links?: Readonly<Record<string, string>>
  readonly replayed?: true
}

/** Stands for an error message that the specification does not define. */
export const someSentence = Symbol('some sentence')

export interface ModelOrder {
  readonly id: number
  readonly owner: Owner
  readonly createdAt: string | undefined
  readonly items: readonly Item[]
  itemIds: readonly number[] | undefined
  status: 'pending_payment' | 'shipped' | 'gone'
  shippedAt: string | undefined
  tracking: unknown
}

export interface ModelPayment {
  readonly id: number
  readonly amount: number
  readonly orderId: number | null
  readonly payer: Caller
  createdAt: string | undefined
}

interface ModelKey {
  readonly name: string
  readonly payment: ModelPayment
  readonly expiresAt: number
}

export interface ModelOptions {
  readonly policy: Policy
  readonly userIds: Readonly<Record<Owner, number>>
  /** The current time, if the test controls the clock. */
  readonly instant: () => string | undefined
}

/**
 * The expected answers of the service, computed as simply as possible: lists, and one request at a time. The service
 * chooses ids, and also times if the test does not control the clock. The model takes them from the first answer that
 * contains them, and expects the same values from then on.
 */
export class Model {
  readonly orders: ModelOrder[] = []
  readonly payments: ModelPayment[] = []
  readonly #keys: ModelKey[] = []
  readonly #options: ModelOptions
  /** Seconds since the start. */
  #now = 0

  constructor(options: ModelOptions) {
    this.#options = options
  }

  pass(seconds: number): void {
    this.#now += seconds
  }

  /** `items` is undefined if the body is bad. */
  createOrder(caller: Caller, owner: Owner | undefined, items: readonly Item[] | undefined, actual: unknown): Answer {
    const refused = this.#refusedFor(caller, owner)
    if (refused !== undefined) return refused
    if (items === undefined) return refusal(400, someSentence)
    if (owner === undefined) return refusal(404, 'User not found')
    const id = newId(actual, this.orders)
    const unknown = { itemIds: undefined, shippedAt: undefined, tracking: undefined }
    const createdAt = this.#options.instant() ?? instantIn(actual, 'created_at')
    const order: ModelOrder = { id, owner, createdAt, items, status: 'pending_payment', ...unknown }
    this.orders.push(order)
    return { status: 201, body: this.#represent(order), location: `/orders/${id}` }
  }

  listOrders(caller: Caller, owner: Owner | undefined, limit: number, offset: number, sort: 'id' | '-id'): Answer {
    const refused = this.#refusedFor(caller, owner)
    if (refused !== undefined) return refused
    if (owner === undefined) return refusal(404, 'User not found')
    const all = this.orders.filter(order => order.owner === owner && order.status !== 'gone')
    if (sort === '-id') all.reverse()
    const page = all.slice(offset, offset + limit)
    const last = page.at(-1)
    const more = all.length > offset + limit
    const link = (from: string) => `/users/${this.#options.userIds[owner]}/orders?sort=${sort}&limit=${limit}&${from}`
    const links = {
      ...(more && last !== undefined && { next: link(`after=${last.id}`) }),
      ...(offset > 0 && { prev: link(`offset=${Math.max(0, offset - limit)}`) }),
      ...((more || offset > 0) && { first: link('offset=0') }),
    }
    return {
      status: 200,
      body: page.map(order => this.#represent(order)),
      ...(Object.keys(links).length > 0 && { links }),
    }
  }

  readOrder(caller: Caller, id: number): Answer {
    return this.#withOrder(caller, id, order => ({ status: 200, body: this.#represent(order) }))
  }

  readItems(caller: Caller, id: number, actual: unknown): Answer {
    return this.#withOrder(caller, id, order => {
      order.itemIds ??= Array.isArray(actual) ? actual.map(item => newId(item)) : []
      const ids = order.itemIds
      return { status: 200, body: order.items.map((item, index) => ({ id: ids[index], ...item })) }
    })
  }

  track(caller: Caller, id: number, actual: unknown): Answer {
    return this.#withOrder(caller, id, order => {
      if (order.status !== 'shipped') return refusal(404, someSentence)
      order.tracking ??= trackingOf(order, actual)
      return { status: 200, body: order.tracking }
    })
  }

  cancel(caller: Caller, id: number): Answer {
    if (this.#mustLogIn(caller)) return notLoggedIn
    const order = this.#find(caller, id)
    if (order?.status === 'shipped') return refusal(409, 'Order is already shipped')
    if (order !== undefined) order.status = 'gone'
    return { status: 204, body: null }
  }

  /**
   * `key` is undefined if none was sent, and `null` if it is invalid. `actual` is the real answer, with the id of the
   * payment.
   */
  payOrder(caller: Caller, id: number, key: string | null | undefined, actual: unknown): Answer {
    if (this.#mustLogIn(caller)) return notLoggedIn
    if (key === null) return refusal(400, someSentence)
    return this.#withOrder(caller, id, order => {
      const name = key === undefined ? undefined : `${caller} /orders/${id}/payment ${key}`
      const known = this.#paidWith(name)
      if (known !== undefined) return { ...this.#paidOrder(order, known), replayed: true }
      if (order.status === 'shipped') return refusal(409, 'Order is already paid')
      order.status = 'shipped'
      order.shippedAt = this.#options.instant()
      return this.#paidOrder(order, this.#pay(caller, amountOf(order.items), id, newId(actual, this.payments), name))
    })
  }

  /** `amount` is undefined if the body is bad. */
  pay(caller: Caller, key: string | null | undefined, amount: number | undefined, actual: unknown): Answer {
    if (this.#mustLogIn(caller)) return notLoggedIn
    if (key === undefined) return refusal(400, 'Idempotency-Key header required')
    if (key === null) return refusal(400, someSentence)
    const name = `${caller} /payments ${key}`
    const known = this.#paidWith(name)
    if (known !== undefined) return { status: 200, body: this.#bodyOf(known, actual), replayed: true }
    if (amount === undefined) return refusal(400, someSentence)
    const payment = this.#pay(caller, amount, null, newId(actual, this.payments), name)
    return { status: 201, body: this.#bodyOf(payment, actual), location: `/payments/${payment.id}` }
  }

  /** The newest payments that the caller may list, of this run alone. */
  listPayments(caller: Caller, limit: number, actual: unknown): Answer {
    if (this.#mustLogIn(caller)) return notLoggedIn
    const all = this.payments.filter(({ payer }) => this.#reaches(caller, payer))
    const items = Array.isArray(actual) ? actual : []
    const body = all
      .toReversed()
      .slice(0, limit)
      .map((payment, index) => this.#bodyOf(payment, items[index]))
    return { status: 200, body }
  }

  readPayment(caller: Caller, id: number, actual: unknown): Answer {
    if (this.#mustLogIn(caller)) return notLoggedIn
    const payment = this.payments.find(payment => payment.id === id)
    const order = this.orders.find(order => order.id === payment?.orderId)
    // The payer and the user of the paid order may read the payment.
    const readers = [payment?.payer, order?.owner].filter(reader => reader !== undefined)
    return payment === undefined || !readers.some(reader => this.#reaches(caller, reader))
      ? refusal(404, 'Payment not found')
      : { status: 200, body: this.#bodyOf(payment, actual) }
  }

  #pay(payer: Caller, amount: number, orderId: number | null, id: number, key: string | undefined): ModelPayment {
    const payment = { id, amount, orderId, payer, createdAt: this.#options.instant() }
    this.payments.push(payment)
    if (key !== undefined) this.#keys.push({ name: key, payment, expiresAt: this.#now + 86_400 })
    return payment
  }

  #paidWith(key: string | undefined): ModelPayment | undefined {
    return this.#keys.findLast(({ name, expiresAt }) => name === key && expiresAt > this.#now)?.payment
  }

  #bodyOf(payment: ModelPayment, actual: unknown): unknown {
    payment.createdAt ??= instantIn(actual, 'created_at')
    const { id, amount, orderId, createdAt } = payment
    return { id, amount, order_id: orderId, created_at: createdAt }
  }

  #withOrder(caller: Caller, id: number, answer: (order: ModelOrder) => Answer): Answer {
    if (this.#mustLogIn(caller)) return notLoggedIn
    const order = this.#find(caller, id)
    return order === undefined ? refusal(404, 'Order not found') : answer(order)
  }

  #represent({ id, status, items, createdAt, owner }: ModelOrder): object {
    const self = `/orders/${id}`
    const links =
      status === 'shipped'
        ? { track: { href: `${self}/tracking`, method: 'GET' } }
        : { pay: { href: `${self}/payment`, method: 'POST' }, cancel: { href: self, method: 'DELETE' } }
    const told = { created_at: createdAt, user_id: this.#options.userIds[owner] }
    return { id, status, amount: amountOf(items), ...told, _links: { self: { href: self }, ...links } }
  }

  #paidOrder(order: ModelOrder, { id }: ModelPayment): Answer {
    return { status: 200, body: this.#represent(order), links: { payment: `/payments/${id}` } }
  }

  #find(caller: Caller, id: number): ModelOrder | undefined {
    return this.orders.find(order => order.id === id && order.status !== 'gone' && this.#reaches(caller, order.owner))
  }

  #mustLogIn(caller: Caller): boolean {
    return this.#options.policy === 'enforced' && caller === 'anonymous'
  }

  #reaches(caller: Caller, owner: Caller | undefined): boolean {
    return this.#options.policy === 'open' || caller === 'admin' || caller === owner
  }

  #refusedFor(caller: Caller, owner: Owner | undefined): Answer | undefined {
    if (this.#mustLogIn(caller)) return notLoggedIn
    return this.#reaches(caller, owner) ? undefined : refusal(403, someSentence)
  }
}

export function amountOf(items: readonly Item[]): number {
  return items.reduce((sum, { quantity, price }) => sum + quantity * price, 0)
}

function refusal(status: number, error: string | typeof someSentence): Answer {
  return { status, body: { error } }
}

const notLoggedIn = refusal(401, someSentence)

/** The id that the service chose. It must be new and above all earlier ones; otherwise the result is NaN. */
function newId(actual: unknown, earlier: readonly { readonly id: number }[] = []): number {
  const { id } = Object(actual)
  return Number.isSafeInteger(id) && id > (earlier.at(-1)?.id ?? 0) ? id : Number.NaN
}

function trackingOf({ id, shippedAt }: ModelOrder, actual: unknown): object {
  const { carrier, number } = Object(actual)
  const filled = (text: unknown) => (typeof text === 'string' && text !== '' ? text : 'some text')
  const instant = shippedAt ?? instantIn(actual, 'shipped_at')
  return { order_id: id, carrier: filled(carrier), number: filled(number), shipped_at: instant }
}

function instantIn(actual: unknown, field: string): string {
  const instant = Object(actual)[field]
  return typeof instant === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(instant)
    ? instant
    : 'an instant'
}
