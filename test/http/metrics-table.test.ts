import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { version } from '../../src/http/pages/home.ts'
import { startTestAppOn, type TestApp } from '../support/app.ts'
import { engineKinds } from '../support/engines.ts'
import { ask } from '../support/http.ts'
import { newRedisDatabase, redisMissing } from '../support/redis.ts'
import { createMember } from '../support/rest.ts'
import { SocketClient } from '../support/sockets.ts'

/** The metrics of the guide, with the labels of each, on one engine. */
function metricsInGuide(engine: string): Map<string, readonly string[]> {
  const guide = readFileSync(join(import.meta.dirname, '..', '..', 'docs', 'operations.md'), 'utf8')
  const rows = Array.from(guide.matchAll(/^\| (`(?:duet|nodejs|process)_.*?) \|(.*?)\| (.*) \|$/gm))
  const isHere = (meaning = '') => engine === 'postgres' || !meaning.startsWith('PostgreSQL:')
  const named = (text = '') => text.match(/\w+/g) ?? []
  return new Map(
    rows
      .filter(([, , , meaning]) => isHere(meaning))
      .flatMap(([, names, labels]) => named(names).map(name => [name, named(labels).toSorted()])),
  )
}

/** The metrics in a text for Prometheus, with the labels of each. They are unknown if there is no series yet. */
function metricsIn(text: string): Map<string, readonly string[] | undefined> {
  const found = Array.from(text.matchAll(/^# TYPE (\w+) (\w+)$/gm), ([, name = '', type]) => {
    const series = new RegExp(`^${name}${type === 'histogram' ? '_count' : ''}(?:\\{(.*)\\})? `, 'm')
    const [first, labels = ''] = series.exec(text) ?? []
    return [name, first === undefined ? undefined : (labels.match(/\w+(?==")/g) ?? []).toSorted()] as const
  })
  return new Map(found)
}

for (const kind of engineKinds) {
  describe(`Metrics on ${kind.name}, with Redis and backups`, { skip: kind.skip || (redisMissing() ?? false) }, () => {
    let app: TestApp
    let text = ''
    before(async () => {
      const env = { REDIS_URL: await newRedisDatabase(), RATE_LIMIT_PATHS: '/', BACKUP_DIR: import.meta.dirname }
      app = await startTestAppOn(kind, env)
      await createMember(app)
      using client = await SocketClient.connect(app)
      await client.read('{ posts { id } }')
      text = (await ask(`${app.url}/metrics`)).body
    })
    after(() => app[Symbol.asyncDispose]())

    it('are all in the table of docs/operations.md, with their labels, and no others are', () => {
      const found = metricsIn(text)
      const told = metricsInGuide(kind.kind)
      assert.deepEqual([...found.keys()].toSorted(), [...told.keys()].toSorted())
      for (const [name, labels] of found) assert.deepEqual(labels ?? told.get(name), told.get(name), name)
    })

    it('say what runs here, and how long Redis takes', () => {
      const info = `version="${version}",node="${process.version}",engine="${kind.kind}"`
      assert.ok(text.includes(`duet_build_info{${info}} 1\n`), text)
      assert.ok(Number(/^duet_redis_seconds_count (\d+)$/m.exec(text)?.[1]) > 0)
    })
  })
}
