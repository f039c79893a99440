import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import fc from 'fast-check'
import { AppError } from '../../src/core/errors.ts'
import { bounds } from '../../src/storage/bounds.ts'
import type { Engine } from '../../src/storage/engine.ts'
import { sql } from '../../src/storage/sql.ts'
import { anyCharacter } from '../support/characters.ts'
import { type EngineKind, engineKinds, type OpenOptions, type TestDatabase } from '../support/engines.ts'
import { runs } from '../support/form.ts'
import { migrationsOf } from '../support/templates.ts'
import { catalogue, notes, type verbs } from './contract-verbs.ts'

type TestEngine = Engine<typeof verbs>

for (const kind of engineKinds) describe(`An engine on ${kind.name}`, { skip: kind.skip }, () => contract(kind))

function contract(kind: EngineKind): void {
  it('reads an acknowledged write at once', async t => {
    const { engine } = await prepared(t, kind)
    for (let round = 0; round < 50; round++) {
      await engine.read(sql`select value from notes where key = 'a'`)
      await engine.write('put', 'a', String(round))
      assert.deepEqual(await engine.read(sql`select value from notes where key = 'a'`), [[String(round)]])
    }
  })

  it('returns rows as arrays and outcomes as plain data, any value unchanged', async t => {
    const { engine } = await prepared(t, kind)
    const texts = fc.string({ unit: anyCharacter, maxLength: 50 }).filter(text => !text.includes('\0'))
    await fc.assert(
      fc.asyncProperty(texts, fc.maxSafeInteger(), async (text, integer) => {
        await engine.write('put', 'key', text)
        const typed = kind.kind === 'postgres' ? '::bigint' : ''
        const statement = {
          text: `select value, $1${typed}, null, key = 'x' from notes where value = $2`,
          values: [integer, text],
        }
        const [row] = await engine.read(statement)
        assert.deepEqual(row?.slice(0, 3), [text, integer, null])
        assert.deepEqual(await engine.write('echo', text, { list: [text, null] }), {
          value: text,
          all: { list: [text, null] },
        })
      }),
      { numRuns: runs(15, 100) },
    )
  })

  it('executes a verb completely or not at all if it throws or violates a constraint, and the error contains no value', async t => {
    const { engine } = await prepared(t, kind)
    for (const verb of ['putThenFail', 'putThenViolate'] as const) {
      await assert.rejects(engine.write(verb, 'x'), isFault)
      assert.deepEqual(await engine.read(sql`select key from notes`), [])
    }
  })

  it('executes statements whose rows the verb does not use, and the verb fails with each of them', async t => {
    const { engine } = await prepared(t, kind)
    assert.equal(await engine.write('putUnread', ['a', 'b', 'c']), 'put')
    assert.deepEqual(await engine.read(sql`select key from notes order by key`), [['a'], ['b'], ['c']])
    for (const keys of [['x', 'a', 'y'], ['x', 'y', 'a'], ['a']]) {
      await assert.rejects(engine.write('putUnread', keys), isFault)
      assert.deepEqual(await engine.read(sql`select count(*) from notes`), [[3]])
    }
    assert.equal(await engine.write('putUnread', ['d']), 'put')
  })

  it('gives a verb the rows of a statement that it has announced, and executes it once', async t => {
    const { engine } = await prepared(t, kind)
    assert.deepEqual(await engine.write('putNext', 'a', 'b'), [[['a']], [['b']], [[2]]])
    assert.equal(await engine.write('putNextThenRollBack', 'c', 'd'), 'undone')
    assert.deepEqual(await engine.read(sql`select count(*) from notes`), [[2]])
    await assert.rejects(engine.write('putNext', 'c', 'b'), isFault)
    assert.deepEqual(await engine.write('putNext', 'c', 'd'), [[['c']], [['d']], [[4]]])
  })

  it('undoes a verb that returns a rollback, returns its outcome, and does not affect other verbs', async t => {
    const { engine } = await prepared(t, kind)
    const outcomes = await Promise.all(
      Array.from({ length: 16 }, (_, index) =>
        index % 4 === 1 ? engine.write('putThenRollBack', `n${index}`) : engine.write('put', `n${index}`, 'kept'),
      ),
    )
    assert.deepEqual(
      outcomes,
      outcomes.map((_, index) => (index % 4 === 1 ? ['undone', `n${index}`] : 'put')),
    )
    assert.deepEqual(await engine.read(sql`select count(*), min(value), max(value) from notes`), [[12, 'kept', 'kept']])
  })

  it('does not affect other verbs if one fails', async t => {
    const { engine } = await prepared(t, kind)
    const outcomes = await Promise.allSettled(
      Array.from({ length: 64 }, (_, index) =>
        index % 8 === 3
          ? engine.write('putThenViolate', `n${index}`)
          : index % 8 === 5
            ? engine.write('putThenFail', `n${index}`)
            : engine.write('put', `n${index}`, 'kept'),
      ),
    )
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      outcomes.map((_, index) => ([3, 5].includes(index % 8) ? 'rejected' : 'fulfilled')),
    )
    assert.deepEqual(await engine.read(sql`select count(*), min(value), max(value) from notes`), [[48, 'kept', 'kept']])
  })

  it('loses no update of concurrent verbs', async t => {
    const { engine } = await prepared(t, kind)
    await engine.write('put', 'counter', '0')
    const seen = await Promise.all(Array.from({ length: 200 }, () => engine.write('increment', 'counter')))
    assert.deepEqual(
      seen.toSorted((a, b) => a - b),
      Array.from({ length: 200 }, (_, index) => index + 1),
    )
  })

  it('executes conflicting verbs, and no read sees a verb half done', async t => {
    const { engine } = await prepared(t, kind)
    await Promise.all([engine.write('put', 'a', '100'), engine.write('put', 'b', '100')])
    const sums = new Set<unknown>()
    let moving = true
    const watching = (async () => {
      while (moving) {
        const rows = await engine.read(sql`select value from notes`)
        sums.add(rows.reduce((sum, [value]) => sum + Number(value), 0))
        await new Promise(setImmediate)
      }
    })()
    for (let round = 0; round < 5; round++) {
      const move = (from: string, to: string) => engine.write('transfer', from, to)
      await Promise.all([move('a', 'b'), move('b', 'a')])
    }
    moving = false
    await watching
    assert.deepEqual([...sums], [200])
    assert.deepEqual(await engine.read(sql`select value from notes order by key`), [['100'], ['100']])
  })

  it('binds values and never inserts them into the SQL text', async t => {
    const { engine } = await prepared(t, kind)
    const hostile = `x'); drop table notes; -- $1 ?1 "`
    await engine.write('put', hostile, hostile)
    assert.deepEqual(await engine.read(sql`select key, value from notes where key = ${hostile}`), [[hostile, hostile]])
  })

  it('reports a wrong statement and an unknown verb as internal errors, without their text', async t => {
    const { engine } = await prepared(t, kind)
    await assert.rejects(engine.read(sql`select secret from nowhere`), isFault)
    await assert.rejects(engine.write('missing' as 'put', 'a', 'b'), isFault)
    await engine.write('put', 'still', 'working')
  })

  it('returns JSON as the text that the database built', async t => {
    const { engine } = await prepared(t, kind)
    const build =
      kind.kind === 'sqlite'
        ? `select json_object('b', 1, 'a', $1)`
        : `select row_to_json(x)::text from (select 1 as b, $1::text as a) x`
    assert.deepEqual(await engine.read({ text: build, values: ['é"\u2028'] }), [['{"b":1,"a":"é\\"\u2028"}']])
  })

  it('gives correct results with more statements than the cache of prepared ones', async t => {
    const { engine } = await prepared(t, kind)
    for (let round = 0; round < 2; round++) {
      for (let index = 0; index < bounds.statements + 50; index++) {
        assert.deepEqual(await engine.read({ text: `select ${index}`, values: [] }), [[index]])
      }
    }
    await engine.write('put', 'still', 'working')
  })

  it('acknowledges a write only when others can read it', async t => {
    const { engine, database } = await prepared(t, kind)
    await using elsewhere = database.open(catalogue)
    await Promise.all(
      Array.from({ length: 50 }, async (_, index) => {
        await engine.write('put', `k${index}`, 'v')
        assert.deepEqual(await elsewhere.read(sql`select value from notes where key = ${`k${index}`}`), [['v']])
      }),
    )
  })

  it('finishes the calls before it was closed, and rejects later ones', async () => {
    await using database = await fresh(kind)
    const engine = database.open(catalogue)
    await engine.ping()
    const asked = Array.from({ length: 20 }, (_, index) => engine.write('put', `k${index}`, 'v'))
    const settled = Promise.allSettled(asked)
    await engine[Symbol.asyncDispose]()
    await assert.rejects(engine.write('put', 'late', 'v'), hasCode('unavailable'))
    await assert.rejects(engine.ping(), hasCode('unavailable'))
    await using again = database.open(catalogue)
    const [row] = await again.read(sql`select count(*) from notes`)
    const acknowledged = (await settled).filter(({ status }) => status === 'fulfilled').length
    assert.ok(Number(row?.[0]) >= acknowledged, `${acknowledged} acknowledged, ${row?.[0]} there`)
  })

  it('notifies its observer of reads, writes and commits', async t => {
    const seen = { reads: 0, writes: 0, committed: 0 }
    const { engine } = await prepared(t, kind, {
      observer: {
        read: () => void seen.reads++,
        write: () => void seen.writes++,
        commit: verbs => {
          seen.committed += verbs
        },
      },
    })
    const before = { ...seen }
    await Promise.all([engine.read(sql`select 1`), engine.read(sql`select 1`), engine.read(sql`select 2`)])
    await Promise.all(Array.from({ length: 10 }, (_, index) => engine.write('put', `k${index}`, 'v')))
    assert.deepEqual(
      [seen.reads - before.reads, seen.writes - before.writes, seen.committed - before.committed],
      [3, 10, 10],
    )
  })

  it('returns the time as canonical text, from one clock', async t => {
    const { engine } = await prepared(t, kind)
    const [[rows]] = (await engine.write('run', [sql`select now_plus(0), now_plus(86400), now_plus(-1)`])) as [
      [[string, string, string]],
    ]
    for (const instant of rows) assert.equal(new Date(instant).toISOString(), instant)
    const [now, later, earlier] = rows.map(instant => Date.parse(instant)) as [number, number, number]
    assert.equal(later - now, 86_400_000)
    assert.equal(now - earlier, 1000)
    assert.ok(Math.abs(Date.now() - now) < 60_000)
  })
}

async function fresh(kind: EngineKind): Promise<TestDatabase> {
  const database = await kind.create()
  await database.migrate([...migrationsOf(kind.kind), notes])
  return database
}

async function prepared(
  t: TestContext,
  kind: EngineKind,
  options?: OpenOptions,
): Promise<{ engine: TestEngine; database: TestDatabase }> {
  const database = await fresh(kind)
  const engine = database.open(catalogue, options)
  t.after(async () => {
    await engine[Symbol.asyncDispose]()
    await database[Symbol.asyncDispose]()
  })
  return { engine, database }
}

function hasCode(code: AppError['code']): (error: unknown) => boolean {
  return error => error instanceof AppError && error.code === code
}

function isFault(error: unknown): boolean {
  assert.ok(error instanceof AppError)
  assert.equal(error.code, 'fault')
  assert.equal(error.message, 'Internal server error')
  return true
}
