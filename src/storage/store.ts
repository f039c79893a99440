import type { Revised } from '../core/condition.ts'
import type { Selection } from '../core/selection.ts'
import type { Change, Store } from '../core/store.ts'
import type { Engine } from './engine.ts'
import { itemOf, orderOf, orderReads, trackedOrderOf } from './entities/orders.ts'
import { createEventLog } from './entities/outbox.ts'
import { claimedOf, paymentOf, paymentReads, purgedTogether } from './entities/payments.ts'
import { type CompiledChange, postReads } from './entities/posts.ts'
import { accountOf, credentialsOf, tokenStateOf, userOf, userReads } from './entities/users.ts'
import { revisionOf } from './revision.ts'
import { compile } from './select/select.ts'
import type { Row, Statement } from './sql.ts'
import type { verbs } from './verbs.ts'

/** Implements the core's store on either engine. */
export function createStore(engine: Engine<typeof verbs>, eventsKeptSeconds?: number): Store {
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
  const listUsers = userReads.list(engine.dialect)
  const listOrdersOf = orderReads.listOf(engine.dialect)
  return {
    ping: () => engine.ping(),
    users: {
      list: async request => (await engine.read(listUsers({ ...request, limit: request.limit + 1 }))).map(userOf),
      read: id => oneRevised(userReads.byId(id), userOf, revisionOf.user),
      tokenState: id => one(userReads.tokenState(id), tokenStateOf),
      credentials: loginKey => one(userReads.credentials(loginKey), credentialsOf),
      create: (values, actor, role = 'member') => engine.write('createUser', values, actor, role),
      replace: (id, values, rights, condition) => engine.write('replaceUser', id, values, rights, condition),
      change: (id, changes, rights, condition) => engine.write('changeUser', id, changes, rights, condition),
      delete: (id, actor, condition) => engine.write('deleteUser', id, actor, condition),
      revokeTokens: (actor, tokenVersion) => engine.write('revokeTokens', actor, tokenVersion),
      listAccounts: async (after, limit) => (await engine.read(userReads.accounts(after, limit))).map(accountOf),
      setRole: (user, role, tokenVersion) => engine.write('setRole', user, role, tokenVersion),
    },
    orders: {
      async listOf(userId, request) {
        const rows = await engine.read(listOrdersOf(userId, { ...request, limit: request.limit + 1 }))
        return rows.length === 0 ? 'absent' : rows.filter(([id]) => id !== null).map(orderOf)
      },
      read: (id, reach) => oneRevised(orderReads.byId(id, reach), orderOf, revisionOf.order),
      items: async (id, reach) => (await engine.read(orderReads.items(id, reach))).map(itemOf),
      tracking: (id, reach) => one(orderReads.byId(id, reach), trackedOrderOf),
      create: (userId, items, actor) => engine.write('createOrder', userId, items, actor),
      cancel: (id, actor, reach, condition) => engine.write('cancelOrder', id, actor, reach, condition),
    },
    payments: {
      read: (id, reach) => oneRevised(paymentReads.byId(id, reach), paymentOf, revisionOf.payment),
      claimed: claim => one(paymentReads.byKey(claim), claimedOf),
      pay: (actor, purpose, claim) => engine.write('pay', actor, purpose, claim),
      purgeKeys: () => engine.write('purgeKeys', purgedTogether),
    },
    posts: {
      async find(selection, values) {
        const found = await this.read(selection, values)
        return found === `{"${selection.fields[0]?.key}":null}` ? undefined : found
      },
      exists: async id => (await engine.read(postReads.byId(id))).length > 0,
      read: (selection, values) => engine.readText({ text: textOf(selection), values }),
      change: (actor, changes) => engine.write('changePosts', actor, changes.map(compiled)),
    },
    events: createEventLog(engine, eventsKeptSeconds),
  }
}
