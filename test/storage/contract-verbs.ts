import { queued, type Row, type Statement, sql } from '../../src/storage/sql.ts'
import { type Catalogue, Rollback, type Steps } from '../../src/storage/verb.ts'

/** Verbs for the tests of the engines. They use the real schema, and otherwise a plain table. */
export const verbs = {
  *run(statements: readonly Statement[]): Steps<readonly (readonly Row[])[]> {
    const answers: (readonly Row[])[] = []
    for (const statement of statements) answers.push(yield statement)
    return answers
  },

  *put(key: string, value: string): Steps<'put'> {
    yield sql`insert into notes (key, value) values (${key}, ${value})
              on conflict (key) do update set value = excluded.value`
    return 'put'
  },

  /** Inserts each key, without looking at the answers. */
  *putUnread(keys: readonly string[]): Steps<'put'> {
    for (const key of keys) yield queued(sql`insert into notes (key, value) values (${key}, 'v')`)
    return 'put'
  },

  /** Inserts both, and announces the second insertion with the first one. */
  *putNext(first: string, second: string): Steps<readonly (readonly Row[])[]> {
    const insert = (key: string) => sql`insert into notes (key, value) values (${key}, 'v') returning key`
    const next = insert(second)
    return [yield { ...insert(first), next }, yield next, yield sql`select count(*) from notes`]
  },

  /** Announces an insertion, and does not want it after all. */
  *putNextThenRollBack(first: string, second: string): Steps<Rollback<'undone'>> {
    const insert = (key: string) => sql`insert into notes (key, value) values (${key}, 'v')`
    yield { ...insert(first), next: insert(second) }
    return new Rollback('undone' as const)
  },

  *putThenFail(key: string): Steps<never> {
    yield sql`insert into notes (key, value) values (${key}, 'never')`
    throw new Error('a defect in a verb, with secret-7351 in it')
  },

  *putThenViolate(key: string): Steps<never> {
    yield sql`insert into notes (key, value) values (${key}, 'never')`
    yield sql`insert into notes (key, value) values (${key}, 'secret-7351')`
    throw new Error('not reached')
  },

  *putThenRollBack(key: string): Steps<Rollback<readonly ['undone', string]>> {
    yield sql`insert into notes (key, value) values (${key}, 'never')`
    return new Rollback(['undone', key] as const)
  },

  *increment(key: string): Steps<number> {
    const [row] = yield sql`select value from notes where key = ${key} for update`
    const next = Number(row?.[0]) + 1
    yield sql`update notes set value = ${String(next)} where key = ${key}`
    return next
  },

  /** Ends the whole transaction, as SQLite itself does after some errors. */
  *undoEverything(): Steps<never> {
    yield { text: 'rollback', values: [] }
    yield sql`select value from nowhere`
    throw new Error('not reached')
  },

  *endThread(): Steps<never> {
    yield sql`select 1`
    process.exit(7) // in a thread this ends only the thread
  },

  /** Blocks the thread that writes, like a disk that hangs. */
  *hang(key: string, milliseconds: number): Steps<void> {
    yield sql`insert into notes (key, value) values (${key}, 'v')`
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds)
  },

  /** Locks the rows in the given order, so that two calls can deadlock. */
  *transfer(from: string, to: string): Steps<'moved'> {
    const [source] = yield sql`select value from notes where key = ${from} for update`
    yield sql`update notes set value = ${String(Number(source?.[0]) - 1)} where key = ${from}`
    const [target] = yield sql`select value from notes where key = ${to} for update`
    yield sql`update notes set value = ${String(Number(target?.[0]) + 1)} where key = ${to}`
    return 'moved'
  },

  *echo(value: string | number | null, all: { list: (string | null)[] }): Steps<unknown> {
    yield sql`select 1`
    return { value, all }
  },
}

export const catalogue: Catalogue<typeof verbs> = { url: import.meta.url, verbs }
