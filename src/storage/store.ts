import type { Revised } from '../core/condition.ts'
import { answerText, type Selection } from '../core/selection.ts'
import type { Change, Store } from '../core/store.ts'
import { waitsNow } from '../lib/waits.ts'
import { answerOf, type Engine } from './engine.ts'
import { itemOf, orderOf, orderReads, trackedOrderOf } from './entities/orders.ts'
import { createEventLog } from './entities/outbox.ts'
import { resetReads } from './entities/password-resets.ts'
import { claimedOf, paymentOf, paymentReads } from './entities/payments.ts'
import type { CompiledChange } from './entities/posts.ts'
import { listOfUsers, userOf } from './entities/user-lists.ts'
import { searchOfUsers } from './entities/user-search.ts'
import { accountOf, credentialsOf, tokenStateOf, userReads } from './entities/users.ts'
import { revisionOf } from './revision.ts'
import { compile } from './select/select.ts'
import { type Row, type Statement, sql } from './sql.ts'
import type { ArgsOf, OutcomeOf } from './verb.ts'
import { verbs } from './verbs.ts'

/** The core's store on either engine: all verbs, which write, and the reads of each entity. */
export function createStore(engine: Engine<typeof verbs>, eventsKeptSeconds?: number): Store {
  const many = async <Item>(statement: Statement, itemOf: (row: Row) => Item) =>
    (await engine.read(statement)).map(row => itemOf(row))
  const one = async <Item>(statement: Statement, itemOf: (row: Row) => Item): Promise<Item | undefined> => {
    const [row] = await engine.read(statement)
    return row === undefined ? undefined : itemOf(row)
  }
  const oneRevised = <Item>(statement: Statement, itemOf: (row: Row) => Item, revisionOf: (item: Item) => string) =>
    one<Revised<Item>>(statement, row => {
      const item = itemOf(row)
      return { item, revision: revisionOf(item) }
    })
  // Many requests share one selection object. Its compiled statement is cached for as long as the object exists.
  const known = new WeakMap<Selection, string>()
  const textOf = (selection: Selection): string => {
    const text = known.get(selection) ?? compile(selection, engine.dialect)
    known.set(selection, text)
    return text
  }
  const compiled = (change: Change): CompiledChange => {
    if (!('show' in change)) return change
    const { selection, values, id } = change.show
    return { ...change, show: { text: textOf(selection), values, id } }
  }
  const listUsers = listOfUsers(engine)
  const searchUsers = searchOfUsers(engine)
  const listOrdersOf = orderReads.listOf(engine.dialect)
  const listOrders = orderReads.listAll(engine.dialect)
  const listPayments = paymentReads.list(engine.dialect)
  return {
    ...writesOf(engine),
    ping: () => engine.ping(),
    listUsers: (request, own) => (request.q === undefined ? listUsers(request, own) : searchUsers(request.q, request)),
    readUser: id => oneRevised(userReads.byId(id), userOf, revisionOf.user),
    tokenState: id => one(userReads.tokenState(id), tokenStateOf),
    credentials: loginKey => one(userReads.credentials(loginKey), credentialsOf),
    hasDueResets: async () => (await engine.read(resetReads.due())).length > 0,
    hasReset: async hash => (await engine.read(resetReads.valid(hash))).length > 0,
    listAccounts: (after, limit) => many(userReads.accounts(after, limit), accountOf),
    async listOrders(userId, request) {
      const rows = await engine.read(listOrdersOf(userId, request))
      return rows.length === 0 ? 'absent' : rows.filter(([id]) => id !== null).map(orderOf)
    },
    listAllOrders: request => many(listOrders(request), orderOf),
    readOrder: (id, reach) => oneRevised(orderReads.byId(id, reach), orderOf, revisionOf.order),
    orderItems: (id, reach) => many(orderReads.items(id, reach), itemOf),
    trackOrder: (id, reach) => one(orderReads.byId(id, reach), trackedOrderOf),
    listPayments: (reach, request) => many(listPayments(reach, request), paymentOf),
    readPayment: (id, reach) => oneRevised(paymentReads.byId(id, reach), paymentOf, revisionOf.payment),
    claimedPayment: claim => one(paymentReads.byKey(claim), claimedOf),
    hasPost: async id => (await engine.read(sql`select id from posts where id = ${id}`)).length > 0,
    select: async (selection, values) => answerOf(await engine.read({ text: textOf(selection), values })),
    async selectOne(selection, values) {
      const found = answerText(await this.select(selection, values))
      return found === `{"${selection.fields[0]?.key}":null}` ? undefined : found
    },
    changePosts: (actor, changes) =>
      engine.write('changePosts', actor, changes.map(compiled), waitsNow()?.span?.traceparent ?? null),
    events: createEventLog(engine, eventsKeptSeconds),
  }
}

type Writes = {
  readonly [Name in keyof typeof verbs]: (
    ...args: ArgsOf<(typeof verbs)[Name]>
  ) => Promise<OutcomeOf<(typeof verbs)[Name]>>
}

/** A method for each verb, with its name and arguments. */
function writesOf(engine: Engine<typeof verbs>): Writes {
  const names = Object.keys(verbs) as (keyof typeof verbs)[]
  return Object.fromEntries(
    names.map(name => [name, (...args: never) => engine.write(name, ...args)]),
  ) as unknown as Writes
}
