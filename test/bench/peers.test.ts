import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { graphqlCases } from '../../bench/cases/graphql.ts'
import { population } from '../../bench/cases/population.ts'
import { restCases } from '../../bench/cases/rest.ts'
import { areInstalled, Starter } from '../../bench/core/contenders.ts'
import { check } from '../../bench/core/measure.ts'
import { apollo, bare, duet, express, fastify, hono, mercurius, yoga } from '../../bench/core/names.ts'
import { Tokens } from '../../bench/core/tokens.ts'
import { fillSqlite } from '../../bench/plant.ts'
import { inForm, notInQuick } from '../support/form.ts'

// The other servers' packages are installed separately. Without them only the bare handler is compared.
const installed = areInstalled() ? [apollo, yoga, mercurius, express, fastify, hono] : []
const others = inForm([], installed)

test('in every case of the benchmark the other servers answer as Duet does', { skip: notInQuick }, async () => {
  await using stack = new AsyncDisposableStack()
  const folder = mkdtempSync(join(tmpdir(), 'duet-bench-'))
  stack.defer(() => rmSync(folder, { recursive: true, force: true }))
  const template = join(folder, 'template.db')
  fillSqlite(template, population.posts, population.comments, population.users)
  const tokens = await Tokens.make()
  const started = await new Starter(folder, tokens.keys, stack).start([duet, bare, ...others], template)
  for (const each of [...restCases(tokens, { some: 5, coldTokens: 5 }), ...graphqlCases()]) {
    await check({ ...each, contenders: each.contenders.flatMap(name => started.get(name) ?? []) })
  }
})
