import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { groupsFolder } from './support/left-behind.ts'

/**
 * Runs the tests of the given files, or of all files.
 * `--quick`: on SQLite, without tests that start processes or measure for long. `--full`: with all long forms.
 * `--seed N`: in the random order of an earlier run, which printed this number as its seed.
 * `--threads N`: servers have so many threads, unless a test needs one or says how many.
 */
const { values, positionals } = parseArgs({
  options: {
    quick: { type: 'boolean' },
    full: { type: 'boolean' },
    seed: { type: 'string' },
    threads: { type: 'string' },
  },
  allowPositionals: true,
})
const root = join(import.meta.dirname, '..')

/** Loading the program takes longer than the tests of many files. */
const filesPerProcess = 10

/** One folder for all temporary files of the run. */
const folder = mkdtempSync(join(tmpdir(), 'duet-run-'))
try {
  chmodSync(folder, 0o711) // PostgreSQL runs as another user
  process.exitCode = await run(groupsOf(chosenFiles()))
} finally {
  rmSync(folder, { recursive: true, force: true })
}

function chosenFiles(): readonly string[] {
  if (positionals.length > 0) return globSync(positionals, { cwd: root })
  const all = globSync('test/**/*.test.ts', { cwd: root }).sort()
  return values.quick ? all.filter(file => !startsProcesses(file)) : all
}

function startsProcesses(file: string): boolean {
  const code = readFileSync(join(root, file), 'utf8')
  return /^test\/(faults|fuzz)\//.test(file) || /from '(.*\/support\/process\.ts|node:child_process)'/.test(code)
}

/** Modules that import some of the files each. Neighbours are in different ones, since they often take about as long. */
function groupsOf(files: readonly string[]): readonly string[] {
  if (files.length === 0) throw new Error('There is no such test file')
  mkdirSync(join(folder, groupsFolder))
  const count = Math.ceil(files.length / filesPerProcess)
  return Array.from({ length: count }, (_, group) => {
    const urls = files.filter((_, index) => index % count === group).map(file => pathToFileURL(resolve(root, file)))
    const path = join(folder, groupsFolder, `${group + 1}.mjs`)
    writeFileSync(path, urls.map(url => `import '${url}'\n`).join(''))
    return path
  })
}

async function run(modules: readonly string[]): Promise<number> {
  const runner = spawn(
    process.execPath,
    [
      '--test',
      // Three at a time on two cores: many tests wait for a database or for a process.
      '--test-concurrency=3',
      // No test may depend on another one.
      values.seed === undefined ? '--test-randomize' : `--test-random-seed=${values.seed}`,
      // Every test has its own timeouts (support/wait.ts). This one is for all other waiting.
      '--test-timeout=900000',
      '--test-global-setup=test/support/global-setup.ts',
      '--test-reporter=spec',
      '--test-reporter-destination=stdout',
      '--test-reporter=./test/support/durations.ts',
      '--test-reporter-destination=stdout',
      ...modules,
    ],
    {
      cwd: root,
      stdio: 'inherit',
      env: {
        ...process.env,
        TMPDIR: folder,
        // Tests start many processes; the compile cache halves the start time of each.
        NODE_COMPILE_CACHE: join(root, 'node_modules', '.cache', 'compile'),
        ...(values.quick && { DUET_TEST_QUICK: '1' }),
        ...(values.full && { DUET_TEST_FULL: '1' }),
        ...(values.threads && { DUET_TEST_THREADS: values.threads }),
      },
    },
  )
  const [code] = await once(runner, 'exit')
  return code ?? 1
}
