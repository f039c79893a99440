import type { Workload } from './drive.ts'

const json = { 'Content-Type': 'application/json' }
const nested = 'query($o:Int){posts(limit:10,offset:$o){id title author{name} comments(limit:3){text author{name}}}}'
export const workloads: readonly Workload[] = [
  { name: 'GET /users/1', line: () => 'GET /users/1' },
  { name: 'distinct pages', line: (_, page) => `GET /users?limit=20&offset=${page}` },
  {
    name: 'nested GraphQL',
    line: () => 'POST /graphql',
    headers: () => json,
    body: (_, page) => `{"query":"${nested}","variables":{"o":${page}}}`,
  },
  {
    name: 'payments',
    line: () => 'POST /payments',
    headers: number => ({ ...json, 'Idempotency-Key': `bench-${number}` }),
    body: () => '{"amount":49.9}',
  },
]
