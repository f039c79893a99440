import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onBothDisks } from './disks.ts'
import { BenchServer, load } from './load.ts'

// Durable payments over HTTP, 64 clients, each payment with a key of its own: Duet as it is served; the same Duet with
// one commit for each payment; and the least that can do it, a node:http handler that commits each payment on its thread.
// Interleaved in one run.

const rounds = 7
const roundMs = 600
const program = (name: string) => join(import.meta.dirname, name)
const servers = {
  'Duet, one commit each': [program('payments-server.ts'), 'one commit each'],
  'bare, one commit each': [program('bare-payments-server.ts')],
  'Duet, commits shared': [program('payments-server.ts'), 'commits shared'],
} as const

async function measure(): Promise<void> {
  const folder = mkdtempSync(join(process.env.BENCH_DIR ?? tmpdir(), 'duet-bench-'))
  await using running = new AsyncDisposableStack()
  const results = new Map<string, { server: BenchServer; rates: number[]; cpu: number; answers: number }>()
  for (const [name, args] of Object.entries(servers)) {
    const path = join(folder, `${name.replaceAll(/\W+/g, '-')}.db`)
    const server = running.use(await BenchServer.start([...args, path]))
    results.set(name, { server, rates: [], cpu: 0, answers: 0 })
    await load(server.port, payment, 64, roundMs) // warm
  }
  for (let round = 0; round < rounds; round++) {
    for (const result of results.values()) {
      const before = result.server.cpu()
      const answers = await load(result.server.port, payment, 64, roundMs)
      result.cpu += result.server.cpu() - before
      result.answers += answers
      result.rates.push((answers * 1000) / roundMs)
    }
  }
  const median = (values: number[]) => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0
  const alone = median(results.get('Duet, one commit each')?.rates ?? [])
  for (const [name, { rates, cpu, answers }] of results) {
    const rate = median(rates)
    const perSecond = Math.round(rate).toString().padStart(6)
    const times = (rate / alone).toFixed(1).padStart(5)
    console.log(
      `  ${name}  ${perSecond} payments/s ${times} x  ${(cpu / answers).toFixed(0).padStart(4)} µs of CPU each`,
    )
  }
  rmSync(folder, { recursive: true, force: true })
}

function payment(): string {
  const body = '{"amount":49.9}'
  const head = ['POST /payments HTTP/1.1', 'Host: 127.0.0.1', 'Content-Type: application/json']
  return [...head, `Content-Length: ${body.length}`, `Idempotency-Key: ${randomUUID()}`, '', body].join('\r\n')
}

await onBothDisks(import.meta.filename, measure)
