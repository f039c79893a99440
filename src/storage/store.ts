import type { Store } from '../core/store.ts'
import type { Engine } from './engine.ts'
import type { Row, Statement } from './sql.ts'
import { credentialsOf, standingOf, userOf, userReads } from './users.ts'
import type { verbs } from './verbs.ts'

/** The core's store over either engine. */
export function createStore(engine: Engine<typeof verbs>): Store {
  const one = async <Item>(statement: Statement, itemOf: (row: Row) => Item): Promise<Item | undefined> => {
    const [row] = await engine.read(statement)
    return row === undefined ? undefined : itemOf(row)
  }
  return {
    ping: () => engine.ping(),
    users: {
      list: async ({ limit, offset }) => (await engine.read(userReads.list(limit + 1, offset))).map(userOf),
      read: id => one(userReads.byId(id), userOf),
      standing: id => one(userReads.standing(id), standingOf),
      credentials: loginKey => one(userReads.credentials(loginKey), credentialsOf),
      create: values => engine.write('createUser', values),
      replace: (id, values, rights) => engine.write('replaceUser', id, values, rights),
      change: (id, changes, rights) => engine.write('changeUser', id, changes, rights),
      delete: (id, actor) => engine.write('deleteUser', id, actor),
      setRole: (user, role, mark) => engine.write('setRole', user, role, mark),
    },
  }
}
