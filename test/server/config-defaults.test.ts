import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Environment, readConfig } from '../../src/config.ts'

const home = { limited: ['/api/', '/graphql'], metricsOpen: true }
const beyond = { limited: ['/'], metricsOpen: false }
const safe = { demoData: false, accessPolicy: 'enforced', corsOrigins: ['*'], ...beyond }
const convenient = { demoData: true, accessPolicy: 'open', corsOrigins: ['loopback'], ...home }
const postgres = 'postgres://duet@db.example/duet'

// Literal values, not computed ones: an open service with a known admin password must never be a default by accident.
const derived: readonly (readonly [environment: Environment, defaults: object])[] = [
  [{}, convenient],
  [{ NODE_ENV: 'development' }, convenient],
  [{ NODE_ENV: 'test' }, convenient],
  [{ HOST: '127.0.0.1' }, convenient],
  [{ HOST: '127.8.7.6' }, convenient],
  [{ HOST: '::1' }, convenient],
  [{ HOST: 'localhost' }, convenient],
  [{ DATABASE_URL: 'sqlite::memory:' }, convenient],
  [{ DATABASE_URL: postgres }, { ...convenient, demoData: false }],
  [
    { HOST: '0.0.0.0', ACCESS_POLICY: 'open' },
    { ...convenient, demoData: false, ...beyond },
  ],
  [{ ACCESS_POLICY: 'enforced' }, { ...safe, demoData: true, ...home }],
  [{ NODE_ENV: 'production' }, safe],
  [{ NODE_ENV: 'production', HOST: '127.0.0.1' }, safe],
  [{ NODE_ENV: 'production', HOST: '::1' }, safe],
  [{ NODE_ENV: 'production', HOST: 'localhost' }, safe],
  [{ NODE_ENV: 'production', DATABASE_URL: postgres }, safe],
  [{ HOST: '0.0.0.0' }, safe],
  [{ HOST: '::' }, safe],
  [{ HOST: '192.168.0.7' }, safe],
  [{ HOST: '10.127.0.1' }, safe],
  [{ HOST: '::ffff:127.0.0.1' }, safe],
  [{ HOST: '127.0.0.1.example.com' }, safe],
  [{ HOST: '0.0.0.0', DATABASE_URL: postgres }, safe],
  [{ HOST: '0.0.0.0', NODE_ENV: 'production' }, safe],
]

for (const [environment, defaults] of derived) {
  const assignments = Object.entries(environment).map(([name, value]) => `${name}=${value}`)
  test(`demo data, access policy, allowed origins, limited paths and metrics have the documented defaults with ${assignments.join(' ') || 'no variable'}`, () => {
    const { demoData, accessPolicy, corsOrigins, rateLimit, metricsOpen } = readConfig(environment)
    const limited = rateLimit.paths
    assert.deepEqual({ demoData, accessPolicy, corsOrigins, limited, metricsOpen }, defaults)
  })
}

test('introspection and pages are off exactly in production, unless their variable says otherwise', () => {
  for (const [environment] of derived) {
    const { introspection, explorers } = readConfig(environment)
    const expected = environment.NODE_ENV !== 'production'
    assert.deepEqual([introspection, explorers], [expected, expected], JSON.stringify(environment))
    for (const [value, on] of Object.entries({ on: true, off: false })) {
      const set = readConfig({ ...environment, INTROSPECTION: value, EXPLORERS: value })
      assert.deepEqual([set.introspection, set.explorers], [on, on])
    }
  }
})

test('DEMO_DATA and ACCESS_POLICY always override the derived defaults', () => {
  for (const [environment] of derived) {
    const opened = readConfig({ ...environment, DEMO_DATA: 'true', ACCESS_POLICY: 'open' })
    assert.deepEqual([opened.demoData, opened.accessPolicy], [true, 'open'])
    const closed = readConfig({ ...environment, DEMO_DATA: 'false', ACCESS_POLICY: 'enforced' })
    assert.deepEqual([closed.demoData, closed.accessPolicy], [false, 'enforced'])
  }
})
