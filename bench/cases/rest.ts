import { type Case, type Contender, onceFor } from '../core/model.ts'
import { bare, duet, express, fastify, hono, restServers } from '../core/names.ts'
import { counter, get, post, shuffled } from '../core/requests.ts'
import type { Tokens } from '../core/tokens.ts'
import { population } from './population.ts'

const users = shuffled(population.users)

/** Cases of the HTTP interface. `some`: how many payments, tokens and users are used again and again. */
export function restCases(tokens: Tokens, { some = 400, coldTokens = 1500 } = {}): readonly Case[] {
  const hot = users.slice(0, some).map(id => get('/users/me', { Authorization: `Bearer ${tokens.of(id)}` }))
  const cold = () =>
    Array.from({ length: coldTokens }, (_, at) =>
      get('/users/me', { Authorization: `Bearer ${tokens.of((at % population.users) + 1)}` }),
    )
  const readUsers = users.map(id => get(`/users/${id}`))
  const lists = users.map(id => get(`/users?limit=20&after=${Math.min(id, population.users - 20)}`))
  const creations = [post('/users', { name: 'A new user', email: `${counter}@example.com` })]
  const payments = [post('/payments', { amount: 49.9 }, { 'Idempotency-Key': `first-${counter}` })]
  const withTokens = [duet, express, fastify, hono, bare]
  return [
    {
      name: 'rest-point',
      title: 'REST: read one user',
      connections: 64,
      contenders: restServers,
      requests: () => readUsers,
      note: 'Duet and Express send an ETag, which they hash for each answer; the others send none here.',
    },
    {
      name: 'rest-list',
      title: 'REST: list 20 users',
      connections: 64,
      contenders: restServers,
      requests: () => lists,
    },
    {
      name: 'rest-create',
      title: 'REST: create a user, durably',
      connections: 64,
      contenders: restServers,
      requests: () => creations,
      essence: (status, body) => ({ status, keys: Object.keys(JSON.parse(body)) }),
    },
    {
      name: 'payment-first',
      title: 'REST: pay with a new key, durably',
      connections: 64,
      contenders: restServers,
      requests: () => payments,
      essence: paymentOf,
    },
    {
      name: 'payment-replay',
      title: 'REST: pay again with a known key',
      connections: 64,
      contenders: restServers,
      requests: onceFor(contender => payAll(contender, some)),
      essence: paymentOf,
    },
    {
      name: 'rest-304',
      title: 'REST: read one user that has not changed (304)',
      connections: 64,
      contenders: restServers,
      requests: onceFor(contender => tagged(contender, some)),
      essence: (status, body) => ({ status, body }),
    },
    {
      name: 'token-hot',
      title: 'REST: read the caller, tokens seen before',
      connections: 64,
      contenders: withTokens,
      requests: () => hot,
      note: 'Express (jose) and Hono verify the signature each time; Fastify (fast-jwt), Duet and the bare handler remember good tokens.',
    },
    {
      name: 'token-cold',
      title: 'REST: read the caller, each token for the first time',
      connections: 64,
      contenders: withTokens,
      requests: cold,
      once: true,
    },
    {
      name: 'rest-point-1',
      title: 'REST: read one user, 1 connection',
      connections: 1,
      contenders: restServers,
      requests: () => readUsers,
      warmedBy: 'rest-point',
    },
    {
      name: 'rest-point-1000',
      title: 'REST: read one user, 1,000 connections',
      connections: 1000,
      contenders: restServers,
      requests: () => readUsers,
      warmedBy: 'rest-point',
    },
  ]
}

function paymentOf(status: number, body: string): unknown {
  const { amount, order_id, ...rest } = JSON.parse(body)
  return { status, amount, order_id, keys: Object.keys(rest) }
}

async function payAll({ server }: Contender, count: number): Promise<readonly string[]> {
  const keys = Array.from({ length: count }, (_, at) => `replay-${at}`)
  const headers = { 'Content-Type': 'application/json' }
  const body = JSON.stringify({ amount: 49.9 })
  const url = `http://127.0.0.1:${server.port}/payments`
  await inTens(keys, key => fetch(url, { method: 'POST', headers: { ...headers, 'Idempotency-Key': key }, body }))
  return keys.map(key => post('/payments', { amount: 49.9 }, { 'Idempotency-Key': key }))
}

async function tagged({ server }: Contender, count: number): Promise<readonly string[]> {
  const some = users.slice(0, count)
  const tags = await inTens(some, async id => {
    const response = await fetch(`http://127.0.0.1:${server.port}/api/users/${id}`)
    return response.headers.get('etag') ?? ''
  })
  return some.map((id, at) => get(`/api/users/${id}`, { 'If-None-Match': tags[at] ?? '' }))
}

async function inTens<Each, Made>(
  list: readonly Each[],
  make: (each: Each) => Promise<Made>,
): Promise<readonly Made[]> {
  const made: Made[] = []
  for (let from = 0; from < list.length; from += 10) {
    made.push(...(await Promise.all(list.slice(from, from + 10).map(make))))
  }
  return made
}
