import { spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { Durations, groupsOf } from './runner/durations.ts'

/**
 * Runs the tests of the given files, or of all files.
 * `--quick`: on SQLite, without tests that start processes, build something or measure for long. `--full`: with all long
 * forms.
 * `--seed N`: in the random order of an earlier run, which printed this number as its seed.
 * `--check`: checks types, lint and format beside the tests.
 * `--threads N`: servers have so many threads, unless a test needs one or says how many.
 * `--note`: keeps how long each file took, for the first run of others: `test/runner/durations.json`.
 */
const { values, positionals } = parseArgs({
  options: {
    quick: { type: 'boolean' },
    full: { type: 'boolean' },
    seed: { type: 'string' },
    threads: { type: 'string' },
    check: { type: 'boolean' },
    note: { type: 'boolean' },
  },
  allowPositionals: true,
})
const root = join(import.meta.dirname, '..')

/** Four at a time on two cores: many tests wait for a database or for a process. With three, a tenth of the time is idle. */
const processesAtOnce = 4

/**
 * Loading the program takes longer than the tests of many files, and code that has run before is faster. So there are
 * few processes; but when one has ended, the others still have work to share. The tests of a quick run hardly wait, so
 * they end at about the same time, and more processes would only load more.
 */
const mostProcesses = values.quick ? processesAtOnce : 2 * processesAtOnce
const fewestFiles = 10

/** How long each file took the last time, in this form; before the first time, how long it took elsewhere. */
const form = values.quick ? 'quick' : values.threads ? 'threads' : values.full ? 'full' : 'usual'
const durationsFile = join(root, 'node_modules', '.cache', `test-durations-${form}.json`)
const notedFile = join(root, 'test', 'runner', 'durations.json')
/** What is expected of a file that nobody has run. */
const usualMs = 2_000

const seed = Number(values.seed ?? randomInt(1_000_000))

/** One folder for all temporary files of the run, and one for those of PostgreSQL. */
const [folder, postgresFolder] = ['duet-run-', 'duet-run-postgres-'].map(name =>
  mkdtempSync(join(values.full ? tmpdir() : memoryFolder(), name)),
) as [string, string]
Object.assign(process.env, {
  TMPDIR: folder,
  DUET_TEST_POSTGRES_FOLDER: postgresFolder,
  // Tests start many processes; the compile cache halves the start time of each.
  NODE_COMPILE_CACHE: join(root, 'node_modules', '.cache', 'compile'),
  ...(values.quick && { DUET_TEST_QUICK: '1' }),
  ...(values.full && { DUET_TEST_FULL: '1' }),
  ...(values.threads && { DUET_TEST_THREADS: values.threads }),
})
try {
  for (const path of [folder, postgresFolder]) chmodSync(path, 0o711) // some servers run as other users
  const [passed, checked] = await Promise.all([runAll(chosenFiles()), values.check ? check() : true])
  process.exitCode = passed && checked ? 0 : 1
} finally {
  for (const path of [folder, postgresFolder]) rmSync(path, { recursive: true, force: true })
}

/**
 * A folder in memory, if there is room: there no commit waits for a disk, and PostgreSQL, which runs without `fsync`
 * anyway, creates a database in 10 ms of CPU time, not in 50 to 80. The long form uses the disk.
 */
function memoryFolder(): string {
  const memory = '/dev/shm'
  try {
    const { bavail, bsize } = statfsSync(memory)
    if (bavail * bsize > 2 ** 30) return memory
  } catch {} // only Linux has it
  return tmpdir()
}

function chosenFiles(): readonly string[] {
  if (positionals.length > 0) return globSync(positionals, { cwd: root })
  const all = globSync('test/**/*.test.ts', { cwd: root }).sort()
  return values.quick ? all.filter(file => !isSlow(file)) : all
}

/** Whether a file has tests that start processes or a browser, or needs packages that take long to load. */
function isSlow(file: string): boolean {
  const code = readFileSync(join(root, file), 'utf8')
  const slow = /from '(.*\/support\/(process|browser)\.ts|node:child_process|vite)'/
  return /^test\/(faults|fuzz|bench)\//.test(file) || slow.test(code)
}

/** Modules that import some of the files each, and take about as long. */
function modulesOf(files: readonly string[], folder: string): readonly string[] {
  if (files.length === 0) throw new Error('There is no such test file')
  mkdirSync(folder)
  const count = Math.min(mostProcesses, Math.ceil(files.length / fewestFiles))
  const known = new Map([...Durations.of(notedFile), ...Durations.of(durationsFile)])
  const expected = new Map(files.map(file => [file, known.get(file) ?? usualMs]))
  return groupsOf(expected, count).map((group, index) => {
    const urls = group.map(file => pathToFileURL(resolve(root, file)))
    const path = join(folder, `${index + 1}.mjs`)
    // Node leaves the first test in its place, so it must not always be the same one.
    const start = seed % urls.length
    const turned = [...urls.slice(start), ...urls.slice(0, start)]
    const ownUrl = pathToFileURL(join(root, 'test', 'runner', 'test-process.ts'))
    const imports = turned.map(url => `import '${url}'\n`)
    writeFileSync(path, [`import { loaded } from '${ownUrl}'\n`, ...imports, 'loaded()\n'].join(''))
    return path
  })
}

/** Returns whether the checks passed. Prints what they found at the end, where it is seen. */
async function check(): Promise<boolean> {
  const child = spawn(process.execPath, [join(root, 'test', 'check.ts')])
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', part => (output += part))
  const [code] = await once(child, 'close')
  process.once('exit', () => process.stdout.write(`\nTypes, lint and format:\n${output}`))
  return code === 0
}

/** Returns whether all tests passed and none left something behind. */
async function runAll(files: readonly string[]): Promise<boolean> {
  // Imported only now: these modules read which form of the tests runs.
  const { globalSetup, globalTeardown, groupsFolder } = await import('./runner/global-setup.ts')
  const modules = modulesOf(files, join(folder, groupsFolder))
  // An interrupted run also stops its servers and removes its files.
  const interrupted = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM']) process.once(name, () => interrupted.abort())
  await globalSetup()
  let passed = false
  try {
    const events = run({
      files: [...modules],
      concurrency: processesAtOnce,
      signal: interrupted.signal,
      execArgv: [
        // No test may depend on another one. With `--test-randomize` for the whole run, Node starts the first file alone.
        `--test-random-seed=${seed}`,
        // Every test has its own timeouts (support/wait.ts). This one is for all other waiting.
        '--test-timeout=900000',
        // Tests create many objects that live briefly. With more room for them, the collector runs less often.
        '--min-semi-space-size=16',
        '--max-semi-space-size=64',
      ],
    })
    const durations = new Durations(events)
    events.on('test:summary', ({ file, success }) => {
      if (file === undefined) passed = success
    })
    const report = events.compose(spec)
    report.pipe(process.stdout, { end: false })
    await once(report, 'end')
    if (positionals.length === 0) durations.save(durationsFile)
    if (values.note) durations.save(notedFile)
    process.stdout.write(`${durations.report()}\nSeed of the random order: ${seed}\n`)
  } finally {
    await globalTeardown()
  }
  return passed
}
