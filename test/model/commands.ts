import assert from 'node:assert/strict'
import fc from 'fast-check'
import { type Answer, type Caller, type Item, type Model, type Owner, someSentence } from './model.ts'
import type { Session } from './service.ts'

type Act = (model: Model, session: Session) => Promise<void>

/** One step of a run. Every step can be taken at any time. */
class Step implements fc.AsyncCommand<Model, Session> {
  readonly #words: string
  readonly #act: Act

  constructor(words: string, act: Act) {
    this.#words = words
    this.#act = act
  }

  check(): boolean {
    return true
  }

  run(model: Model, session: Session): Promise<void> {
    return this.#act(model, session)
  }

  toString(): string {
    return this.#words
  }
}

/** Ann is chosen most often, so that requests concern the same rows. */
const callers = fc.constantFrom<Caller[]>('ann', 'ann', 'ann', 'ann', 'anonymous', 'bob', 'admin')
/** `nobody` stands for an id that no user has. */
const owners = fc.constantFrom<(Owner | 'nobody')[]>('ann', 'ann', 'ann', 'ann', 'bob', 'nobody')
/** The index of an existing row, counted from the latest; 9 for a row that does not exist. */
const which = fc.constantFrom(0, 0, 0, 0, 1, 1, 2, 3, 9)

/** The way a key is sent, and the resulting key: `undefined` for none, `null` for a key that is refused. */
interface Key {
  readonly words: string
  readonly name: string | null | undefined
  header(prefix: string): string | undefined
}

const keyNamed = (name: string): Key => ({ words: `key ${name}`, name, header: prefix => prefix + name })
const [k1, k2] = [keyNamed('k1'), keyNamed('k2')]
const keys = fc.constantFrom<Key[]>(
  ...[k1, k1, k1, k1, k2, k2],
  { words: 'key "k1"', name: 'k1', header: prefix => `"${prefix}k1"` },
  { words: 'no key', name: undefined, header: () => undefined },
  { words: 'a blank key', name: undefined, header: () => '' },
  { words: 'a key with a blank', name: null, header: prefix => `${prefix}k 1` },
  { words: 'a key too long', name: null, header: prefix => prefix + 'k'.repeat(255) },
)

const goodItems: fc.Arbitrary<Item[]> = fc.array(
  fc.record({
    name: fc.constantFrom('Pen', 'Ink', 'Лист', 'a'.repeat(320)),
    quantity: fc.integer({ min: 1, max: 20 }),
    price: fc.integer({ min: 1, max: 1000 }),
  }),
  { minLength: 1, maxLength: 3 },
)
const badOrders = fc.constantFrom<unknown[]>(
  {},
  { items: [] },
  { items: [{ name: 'Pen', quantity: 1, price: 0 }] },
  { items: [{ name: 'Pen', quantity: 0, price: 1 }] },
  { items: [{ name: ' ', quantity: 1, price: 1 }] },
  { items: [{ name: 'Pen', quantity: 1.5, price: 1 }] },
)
const goodAmounts = fc.oneof(
  fc.integer({ min: 1, max: 100_000_000_000_000 }).map(cents => cents / 100),
  fc.constantFrom(0.01, 0.29, 1.15, 1_000_000_000_000),
)
const badPayments = fc.constantFrom<unknown[]>(
  {},
  { amount: 0 },
  { amount: -5 },
  { amount: 0.001 },
  { amount: '1' },
  [],
)

const createOrder = fc
  .tuple(callers, owners, fc.oneof({ weight: 9, arbitrary: goodItems }, { weight: 1, arbitrary: badOrders }))
  .map(([caller, owner, order]) => {
    const body = Array.isArray(order) ? { items: order } : order
    return step(`${caller} creates an order of ${owner}: ${JSON.stringify(body)}`, async (model, session) => {
      const answer = await session.send(`POST /users/${userId(session, owner)}/orders`, caller, { body })
      const items = Array.isArray(order) ? order : undefined
      compare(answer, model.createOrder(caller, known(owner), items, answer.body))
    })
  })

const listOrders = fc
  .tuple(callers, owners, fc.integer({ min: 1, max: 4 }), fc.integer({ min: 0, max: 3 }), fc.constantFrom('id', '-id'))
  .map(([caller, owner, limit, offset, sort]) =>
    step(`${caller} lists orders of ${owner}, ${limit} from ${offset} by ${sort}`, async (model, session) => {
      const path = `/users/${userId(session, owner)}/orders?sort=${sort}&limit=${limit}&offset=${offset}`
      compare(await session.send(`GET ${path}`, caller), model.listOrders(caller, known(owner), limit, offset, sort))
    }),
  )

/** The payments of other runs follow those of this one in the list of all. */
const listPayments = callers.map(caller =>
  step(`${caller} lists the newest payments`, async (model, session) => {
    const limit = Math.max(1, model.payments.length)
    const { status, body } = await session.send(`GET /payments?sort=-id&limit=${limit}`, caller)
    if (model.payments.length > 0) compare({ status, body }, model.listPayments(caller, limit, body))
  }),
)

const readOrder = onOrder('reads', async (model, session, caller, id) => {
  compare(await session.send(`GET /orders/${id}`, caller), model.readOrder(caller, id))
})

const readItems = onOrder('reads the items of', async (model, session, caller, id) => {
  const answer = await session.send(`GET /orders/${id}/items`, caller)
  compare(answer, model.readItems(caller, id, answer.body))
})

const track = onOrder('tracks', async (model, session, caller, id) => {
  const answer = await session.send(`GET /orders/${id}/tracking`, caller)
  compare(answer, model.track(caller, id, answer.body))
})

const cancel = onOrder('cancels', async (model, session, caller, id) => {
  compare(await session.send(`DELETE /orders/${id}`, caller), model.cancel(caller, id))
})

const payOrder = fc.tuple(callers, which, keys).map(([caller, number, key]) =>
  step(`${caller} pays order ${number} with ${key.words}`, (model, session) => {
    const id = orderId(model, number)
    return toBeRepeated(session, async () => {
      const answer = await session.send(`POST /orders/${id}/payment`, caller, { key: key.header(session.prefix) })
      compare(answer, model.payOrder(caller, id, key.name, paymentIn(answer)))
    })
  }),
)

const pay = fc
  .tuple(callers, keys, fc.oneof({ weight: 3, arbitrary: goodAmounts }, { weight: 1, arbitrary: badPayments }))
  .map(([caller, key, amount]) => {
    const body = typeof amount === 'number' ? { amount } : amount
    return step(`${caller} pays ${JSON.stringify(body)} with ${key.words}`, (model, session) =>
      toBeRepeated(session, async () => {
        const answer = await session.send('POST /payments', caller, { key: key.header(session.prefix), body })
        compare(answer, model.pay(caller, key.name, typeof amount === 'number' ? amount : undefined, answer.body))
      }),
    )
  })

const payAgain = fc.constant(step('who paid last pays again', async (_model, session) => repetitions.get(session)?.()))

const payAtOnce = fc.tuple(callers, keys, goodAmounts).map(([caller, key, amount]) =>
  step(`${caller} pays ${amount} with ${key.words} three times at once`, async (model, session) => {
    const request = { key: key.header(session.prefix), body: { amount } }
    const sending = [1, 2, 3].map(() => session.send('POST /payments', caller, request))
    for (const answer of inOrderOfEffect(await Promise.all(sending))) {
      compare(answer, model.pay(caller, key.name, amount, answer.body))
    }
  }),
)

const payAndCancelAtOnce = fc.tuple(callers, callers, which).map(([payer, canceller, number]) =>
  step(`${payer} pays order ${number}, twice, while ${canceller} cancels it`, async (model, session) => {
    const id = orderId(model, number)
    const payment = async () => ({ kind: 'pay', ...(await session.send(`POST /orders/${id}/payment`, payer)) })
    const cancellation = async () => ({ kind: 'cancel', ...(await session.send(`DELETE /orders/${id}`, canceller)) })
    for (const { kind, ...answer } of inOrderOfEffect(await Promise.all([payment(), cancellation(), payment()]))) {
      if (kind === 'cancel') compare(answer, model.cancel(canceller, id))
      else compare(answer, model.payOrder(payer, id, undefined, paymentIn(answer)))
    }
  }),
)

const readPayment = fc.tuple(callers, which).map(([caller, number]) =>
  step(`${caller} reads payment ${number}`, async (model, session) => {
    const id = model.payments.at(-1 - number)?.id ?? nobodysId
    const answer = await session.send(`GET /payments/${id}`, caller)
    compare(answer, model.readPayment(caller, id, answer.body))
  }),
)

const restart = fc.constant(step('the service is restarted', async (_model, { service }) => service.restart()))

// On PostgreSQL the clock runs on by itself, so the sums are either the lifetime of a key or at least a minute away
// from it.
const pass = fc.constantFrom(3_600, 43_200, 86_340, 86_400).map(seconds =>
  step(`${seconds} seconds pass`, async (model, { service }) => {
    await service.pass(seconds)
    model.pass(seconds)
  }),
)

// The number is the frequency of each step. A restart takes as long as fifty requests.
export const steps = fc.commands(
  [
    ...of(16, createOrder, payOrder),
    ...of(8, listOrders, readOrder, track, cancel, pay, payAgain, readPayment, listPayments, pass),
    ...of(4, readItems, payAtOnce, payAndCancelAtOnce),
    ...of(1, restart),
  ],
  { maxCommands: 30, size: 'max' },
)

const nobodysId = 9_007_199_254_740_991

function of(times: number, ...kinds: readonly fc.Arbitrary<Step>[]): fc.Arbitrary<Step>[] {
  return kinds.flatMap(kind => Array<fc.Arbitrary<Step>>(times).fill(kind))
}

function step(words: string, act: Act): Step {
  return new Step(words, act)
}

/** Remembers a request, to repeat it like a client that did not get the answer. */
function toBeRepeated(session: Session, request: () => Promise<void>): Promise<void> {
  repetitions.set(session, request)
  return request()
}

const repetitions = new WeakMap<Session, () => Promise<void>>()

function onOrder(
  does: string,
  act: (model: Model, session: Session, caller: Caller, id: number) => Promise<void>,
): fc.Arbitrary<Step> {
  return fc
    .tuple(callers, which)
    .map(([caller, number]) =>
      step(`${caller} ${does} order ${number}`, (model, session) =>
        act(model, session, caller, orderId(model, number)),
      ),
    )
}

function orderId(model: Model, number: number): number {
  return model.orders.at(-1 - number)?.id ?? nobodysId
}

function userId({ userIds }: Session, owner: Owner | 'nobody'): number {
  return owner === 'nobody' ? nobodysId : userIds[owner]
}

function known(owner: Owner | 'nobody'): Owner | undefined {
  return owner === 'nobody' ? undefined : owner
}

/** The answer to the payment of an order contains the payment's id in its link. */
function paymentIn({ links }: Answer): { id: number } {
  return { id: Number(links?.payment?.replace('/payments/', '')) }
}

/** Sorts the answers of concurrent requests: those that changed something come before those that found it changed. */
function inOrderOfEffect<Told extends Answer>(answers: readonly Told[]): Told[] {
  const rank = ({ status, replayed }: Answer) => (replayed || status >= 400 ? 1 : 0)
  return answers.toSorted((one, other) => rank(one) - rank(other))
}

function compare(answer: Answer, expected: Answer): void {
  assert.deepEqual(hasSomeSentence(expected) ? withoutSentence(answer) : answer, expected)
}

function hasSomeSentence({ body }: Answer): boolean {
  return Object(body).error === someSentence
}

function withoutSentence(answer: Answer): Answer {
  const { error } = Object(answer.body)
  return { ...answer, body: typeof error === 'string' && error !== '' ? { error: someSentence } : answer.body }
}
