import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import fc from 'fast-check'
import { AppError } from '../../src/core/errors.ts'
import { sql } from '../../src/storage/sql.ts'
import { anyCharacter } from '../support/characters.ts'
import { type EngineKind, engineKinds } from '../support/engines.ts'
import { runs } from '../support/form.ts'
import { shared } from '../support/shared.ts'
import { catalogue } from './contract-verbs.ts'
import { databaseWithNotes, type Notes, openNotes } from './notes.ts'

for (const kind of engineKinds) {
  describe(`An engine on ${kind.name}`, { skip: kind.skip }, () => {
    const notes = shared(() => openNotes(kind))
    beforeEach(() => notes.engine.write('run', [sql`delete from children`, sql`delete from notes`]))
    contract(kind, notes)
  })
}

function contract(kind: EngineKind, notes: Notes): void {
  it('acknowledges a write only when all can read it', async () => {
    const { engine, database } = notes
    await using elsewhere = database.open(catalogue)
    await Promise.all(
      Array.from({ length: 50 }, async (_, index) => {
        const read = sql`select value from notes where key = ${`k${index % 25}`}`
        await engine.read(read)
        await engine.write('put', `k${index % 25}`, 'v')
        for (const each of [engine, elsewhere]) assert.deepEqual(await each.read(read), [['v']])
      }),
    )
  })

  it('returns rows as arrays and outcomes as plain data, any value unchanged', async () => {
    const { engine } = notes
    const texts = fc.string({ unit: anyCharacter, maxLength: 50 }).filter(text => !text.includes('\0'))
    await fc.assert(
      fc.asyncProperty(texts, fc.maxSafeInteger(), async (text, integer) => {
        await engine.write('put', 'key', text)
        const statement = sql`select value, cast(${integer} as bigint), null from notes where value = ${text}`
        assert.deepEqual(await engine.read(statement), [[text, integer, null]])
        const all = { list: [text, null] }
        assert.deepEqual(await engine.write('echo', text, all), { value: text, all })
      }),
      { numRuns: runs(15, 100) },
    )
  })

  it('executes statements whose rows the verb does not use, and the verb fails with each of them', async () => {
    const { engine } = notes
    assert.equal(await engine.write('putUnread', ['a', 'b', 'c']), 'put')
    assert.deepEqual(await engine.read(sql`select key from notes order by key`), [['a'], ['b'], ['c']])
    for (const keys of [['x', 'a', 'y'], ['x', 'y', 'a'], ['a']]) {
      await assert.rejects(engine.write('putUnread', keys), isFault)
      assert.deepEqual(await engine.read(sql`select count(*) from notes`), [[3]])
    }
    assert.equal(await engine.write('putUnread', ['d']), 'put')
  })

  it('gives a verb the rows of a statement that it has announced, and executes it once', async () => {
    const { engine } = notes
    assert.deepEqual(await engine.write('putNext', 'a', 'b'), [[['a']], [['b']], [[2]]])
    assert.equal(await engine.write('putNextThenRollBack', 'c', 'd'), 'undone')
    assert.deepEqual(await engine.read(sql`select count(*) from notes`), [[2]])
    await assert.rejects(engine.write('putNext', 'c', 'b'), isFault)
    assert.deepEqual(await engine.write('putNext', 'c', 'd'), [[['c']], [['d']], [[4]]])
  })

  it('undoes a verb that throws, violates a constraint or returns a rollback, without an effect on others, and its error contains no value', async () => {
    const { engine } = notes
    const undone = { 3: 'putThenViolate', 5: 'putThenFail', 7: 'putThenRollBack' } as const
    const outcomes = await Promise.allSettled(
      Array.from({ length: 64 }, (_, index) => {
        const verb = undone[(index % 8) as keyof typeof undone]
        return verb === undefined ? engine.write('put', `n${index}`, 'kept') : engine.write(verb, `n${index}`)
      }),
    )
    for (const [index, outcome] of outcomes.entries()) {
      const rest = index % 8
      if (rest === 3 || rest === 5) assert.ok(outcome.status === 'rejected' && isFault(outcome.reason))
      else assert.deepEqual(Object(outcome).value, rest === 7 ? ['undone', `n${index}`] : 'put')
    }
    assert.deepEqual(await engine.read(sql`select count(*), min(value), max(value) from notes`), [[40, 'kept', 'kept']])
  })

  it('never acknowledges a COMMIT that fails, which changes nothing, and the next write succeeds', async () => {
    const { engine } = notes
    const addChild = (parent: string) => engine.write('run', [sql`insert into children (parent) values (${parent})`])
    await assert.rejects(addChild('nobody'), AppError)
    assert.deepEqual(await engine.read(sql`select parent from children`), [])
    await engine.write('put', 'somebody', 'v')
    await addChild('somebody')
    assert.deepEqual(await engine.read(sql`select parent from children`), [['somebody']])
  })

  it('executes conflicting verbs, and no read sees a verb half done', async () => {
    const { engine } = notes
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

  it('reports a wrong statement and an unknown verb as internal errors, without their text', async () => {
    const { engine } = notes
    await assert.rejects(engine.read(sql`select secret from nowhere`), isFault)
    await assert.rejects(engine.write('missing' as 'put', 'a', 'b'), isFault)
    await engine.write('put', 'still', 'working')
  })

  it('finishes the calls before it was closed, and rejects later ones', async () => {
    await using database = await databaseWithNotes(kind)
    const engine = database.open(catalogue)
    await engine.ping()
    const asked = Array.from({ length: 20 }, (_, index) => engine.write('put', `k${index}`, 'v'))
    const settled = Promise.allSettled(asked)
    const answers: unknown[] = []
    for (let n = 0; n < 20; n++) void engine.read(sql`select ${n}`).then(rows => answers.push(rows))
    await engine[Symbol.asyncDispose]()
    assert.equal(answers.length, 20)
    await assert.rejects(engine.write('put', 'late', 'v'), { code: 'unavailable' })
    await assert.rejects(engine.ping(), { code: 'unavailable' })
    await using again = database.open(catalogue)
    const [row] = await again.read(sql`select count(*) from notes`)
    const acknowledged = (await settled).filter(({ status }) => status === 'fulfilled').length
    assert.ok(Number(row?.[0]) >= acknowledged, `${acknowledged} acknowledged, ${row?.[0]} there`)
  })

  it('notifies its observer of reads, writes and commits', async () => {
    const seen = { reads: 0, writes: 0, committed: 0 }
    const commit = (verbs: number) => (seen.committed += verbs)
    const observer = { read: () => void seen.reads++, write: () => void seen.writes++, commit }
    await using engine = notes.database.open(catalogue, { observer })
    await Promise.all([engine.read(sql`select 1`), engine.read(sql`select 1`), engine.read(sql`select 2`)])
    await Promise.all(Array.from({ length: 10 }, (_, index) => engine.write('put', `k${index}`, 'v')))
    assert.deepEqual(seen, { reads: 3, writes: 10, committed: 10 })
  })

  it('returns the time as canonical text, from one clock', async () => {
    const { engine } = notes
    const instants = await engine.write('run', [sql`select now_plus(0), now_plus(86400), now_plus(-1)`])
    const [now = 0, later, earlier] = instants.flat(2).map(instant => {
      assert.equal(new Date(String(instant)).toISOString(), instant)
      return Date.parse(String(instant))
    })
    assert.deepEqual([later, earlier], [now + 86_400_000, now - 1000])
    assert.ok(Math.abs(Date.now() - now) < 60_000)
  })
}

const isFault = (error: unknown): boolean =>
  error instanceof AppError && error.code === 'fault' && error.message === 'Internal server error'
