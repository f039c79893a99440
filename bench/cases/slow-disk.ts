import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { skip } from '../core/contenders.ts'
import { measure } from '../core/measure.ts'
import { bare, duet, express, go } from '../core/names.ts'
import { fillSqlite } from '../plant.ts'
import type { Part } from './context.ts'
import { restCases } from './rest.ts'

const strace =
  'strace -D -f --seccomp-bpf -e trace=fsync,fdatasync -e inject=fsync,fdatasync:delay_exit=2000 -o /dev/null'

const contenders = [duet, express, go, bare]
const slowCase = { name: 'payment-slow-disk', contenders }

/** Payments on a disk that takes 2 ms longer for every synchronisation, which strace adds. */
export const slowDisk: Part = {
  name: 'slow-disk',
  cases: () => [slowCase],
  async run({ folder, generator, tokens, pace, choose, starter }) {
    const [chosen] = choose([slowCase])
    const first = restCases(tokens).find(({ name }) => name === 'payment-first')
    if (first === undefined || chosen === undefined) return []
    if (spawnSync('strace', ['-V']).error !== undefined) {
      skip('The case with a slower disk', 'strace is not installed')
      return []
    }
    await using stack = new AsyncDisposableStack()
    const template = join(folder, 'slow.db')
    fillSqlite(template, 10)
    const started = await starter(stack).start(chosen.contenders, template, { before: strace.split(' ') })
    const slow = {
      ...first,
      ...chosen,
      title: 'REST: pay with a new key, 2 ms more for every synchronisation with the disk',
      note: 'Requests per second are what counts here: strace makes the CPU of all servers larger.',
    }
    // They wait for the disk most of the time: many requests would take long.
    return await measure(generator, [slow], started, { ...pace, warm: { ...pace.warm, answers: 300 } })
  },
}
