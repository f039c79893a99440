import { duetOnSqlite } from './cases/postgres.ts'
import * as names from './core/names.ts'

/** Which cases are measured, and against whom. The first contender of a case is the base and always there. */
export type Choice = (name: string, contender: string) => boolean

const sockets = [names.mercurius, names.bareLoop]
const growth = ['100 thousand posts']

/** What the goals are about, as far as it fits into 90 seconds. */
const quick: Readonly<Record<string, readonly string[]>> = {
  'rest-point': [names.express, names.fastify, names.hono, names.bare],
  'payment-first': [names.express, names.bare],
  'graphql-point': [names.apollo, names.mercurius],
  nested: [names.apollo, names.yoga, names.mercurius, names.go, names.bare],
  'nested-shared': [names.apollo, names.yoga],
  like: [names.apollo, names.mercurius],
  'postgres-nested': [names.postgraphile, duetOnSqlite],
  'payment-slow-disk': [names.express, names.bare],
  'subscriptions-1000-small': sockets,
  'subscriptions-1000-nested': sockets,
  'subscriptions-10000-small': [names.bareLoop],
  'growth-sqlite-nested': growth,
  'growth-sqlite-like': growth,
}

export const quickChoice: Choice = (name, contender) => quick[name]?.includes(contender) ?? false

/**
 * What the command line names: cases as the tables call them, where a `*` at the end stands for any ending, and parts of
 * contenders' names. Throws if no case or contender is meant.
 */
export function choiceOf(
  cases: readonly { readonly name: string; readonly contenders: readonly string[] }[],
  only: string | undefined,
  against: string | undefined,
): Choice {
  const isMeant = (pattern: string, name: string) =>
    pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern
  const patterns = listOf(only)
  const others = listOf(against).map(text => text.toLowerCase())
  const contenders = [...new Set(cases.flatMap(each => each.contenders))]
  for (const pattern of patterns) {
    if (cases.some(({ name }) => isMeant(pattern, name))) continue
    throw new Error(`No case is called ${pattern}. There are: ${cases.map(({ name }) => name).join(' ')}`)
  }
  for (const part of others) {
    if (contenders.some(name => name.toLowerCase().includes(part))) continue
    throw new Error(`No server is called ${part}. There are: ${contenders.join(', ')}`)
  }
  return (name, contender) =>
    (patterns.length === 0 || patterns.some(pattern => isMeant(pattern, name))) &&
    (others.length === 0 || others.some(part => contender.toLowerCase().includes(part)))
}

function listOf(text: string | undefined): readonly string[] {
  return (text ?? '')
    .split(',')
    .map(part => part.trim())
    .filter(part => part !== '')
}
