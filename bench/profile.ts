import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs, promisify } from 'node:util'
import { BenchServer } from './core/server.ts'
import { fillSqlite } from './plant.ts'
import { drive } from './threads/drive.ts'
import { workloads } from './threads/workloads.ts'

// What the CPU time of a request is spent on, on SQLite with one thread: Linux's `perf` takes samples of the warm server
// under load, and they are added up by the part of the system whose code ran.

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '10' },
    warm: { type: 'string', default: '8' },
    connections: { type: 'string', default: '64' },
  },
})
const [seconds, warm, connections] = [Number(values.seconds), Number(values.warm), Number(values.connections)]
const run = promisify(execFile)

/** The parts, by the name of the function and the program or library that it belongs to. The first that fits counts. */
const parts: readonly (readonly [part: string, pattern: RegExp])[] = [
  ['the kernel', /\[kernel|\[k\]/],
  ['Duet, in JavaScript', /JS:\S* .*\/src\//],
  ['Fastify and its router', /JS:\S* .*\/node_modules\/(fastify|find-my-way|avvio|@fastify)\//],
  ['other packages', /JS:\S* .*\/node_modules\//],
  ['node:http and net, in JavaScript', /JS:\S* /],
  ['garbage collection', /Scaveng|Mark(ing|Compact)|Sweep|Evacuat|v8::internal::Heap::|IteratePointers|Remembered/],
  ['built-in functions of V8', /Builtin|BytecodeHandler|RecordWrite|Stub/],
  ['the HTTP parser', /llhttp|\bon_(message|header|url|body)|node::\(anonymous namespace\)::Parser/],
  ['V8, in C++', /v8::|absl::/],
  ['Node and libuv, in C++', /node::|uv_|napi_|simdutf|ada::|ncrypto/],
  ['SQLite', /sqlite|\bjson[A-Z]|[bB]tree|pager|pcache|[vV]dbe|\bwal[A-Z]|moveTo|Payload|serialGet|sql3/],
  ['the C library', /libc\.so|libstdc|libgcc|libpthread|\[vdso\]/],
]

const folder = mkdtempSync(join(tmpdir(), 'duet-profile-'))
try {
  for (const [index, workload] of workloads.entries()) {
    const path = join(folder, `${index}.db`) // a new name: the server of the workload before was killed and left its WAL file
    fillSqlite(path, 20_000)
    await using server = await start(path)
    await drive(server.port, workload, connections, warm)
    const samples = join(folder, 'perf.data')
    const before = server.cpu()
    const [{ answers }] = await Promise.all([
      drive(server.port, workload, connections, seconds),
      run('perf', ['record', '-q', '-F', '1999', '-p', `${server.pid}`, '-o', samples, '--', 'sleep', `${seconds}`]),
    ])
    print(workload.name, (server.cpu() - before) / answers, await sharesOf(samples))
    rmSync(join(tmpdir(), `perf-${server.pid}.map`), { force: true })
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}

/** `--perf-basic-prof` tells `perf` the names of functions that V8 has compiled. */
function start(path: string): Promise<BenchServer> {
  const program = join(import.meta.dirname, '..', 'bin', 'duet.mjs')
  return BenchServer.start(['--perf-basic-prof', program, 'serve'], {
    PORT: '0',
    DATABASE_URL: `sqlite:${path}`,
    RATE_LIMIT_MAX: '0',
    LOG_LEVEL: 'warn',
    DEMO_DATA: 'false',
    THREADS: '1',
  })
}

/** The percentage of each part. */
async function sharesOf(samples: string): Promise<ReadonlyMap<string, number>> {
  const args = ['report', '-i', samples, '--stdio', '-F', 'overhead,dso,sym', '-t', '\t']
  const { stdout } = await run('perf', args, { maxBuffer: 2 ** 28 })
  const shares = new Map<string, number>()
  for (const line of stdout.split('\n')) {
    const percent = Number.parseFloat(line)
    if (Number.isNaN(percent)) continue
    const [part = 'the rest'] = parts.find(([, pattern]) => pattern.test(line)) ?? []
    shares.set(part, (shares.get(part) ?? 0) + percent)
  }
  return shares
}

function print(name: string, cpu: number, shares: ReadonlyMap<string, number>): void {
  console.log(`${name}: ${cpu.toFixed(0)} µs of CPU for a request`)
  const sum = shares.values().reduce((all, share) => all + share, 0)
  for (const [part, share] of [...shares].sort(([, one], [, other]) => other - one)) {
    const microseconds = ((cpu * share) / sum).toFixed(1)
    console.log(`${((100 * share) / sum).toFixed(1).padStart(6)} %  ${microseconds.padStart(6)} µs  ${part}`)
  }
}
