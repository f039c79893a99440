import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

/**
 * Runs the tests of the given files, or of all files.
 * `--quick`: on SQLite alone. `--full`: with the long forms of crashes, races and random operations.
 * `--seed N`: in the random order of an earlier run, which printed this number as its seed.
 */
const { values, positionals } = parseArgs({
  options: { quick: { type: 'boolean' }, full: { type: 'boolean' }, seed: { type: 'string' } },
  allowPositionals: true,
})
const root = join(import.meta.dirname, '..')
const files = positionals.length > 0 ? positionals : ['test/**/*.test.ts']

const runner = spawn(
  process.execPath,
  [
    '--test',
    // Three at a time on two cores: many tests wait for a database or for a process.
    '--test-concurrency=3',
    // No test may depend on another one.
    values.seed === undefined ? '--test-randomize' : `--test-random-seed=${values.seed}`,
    // Waiting has an end of its own in every test (support/wait.ts). This is for what waits without looking.
    '--test-timeout=900000',
    '--test-global-setup=test/support/global-setup.ts',
    '--test-reporter=spec',
    '--test-reporter-destination=stdout',
    '--test-reporter=./test/support/durations.ts',
    '--test-reporter-destination=stdout',
    ...files,
  ],
  {
    cwd: root,
    stdio: 'inherit',
    env: {
      ...process.env,
      // Tests start many processes; compiled code spares each of them half of its start.
      NODE_COMPILE_CACHE: join(root, 'node_modules', '.cache', 'compile'),
      ...(values.quick && { DUET_TEST_QUICK: '1' }),
      ...(values.full && { DUET_TEST_FULL: '1' }),
    },
  },
)
runner.on('exit', code => {
  process.exitCode = code ?? 1
})
