/** Quick: on SQLite, without processes and long measurements. Full: with all long forms. The usual run is between them. */
const form = process.env.DUET_TEST_FULL ? 'full' : process.env.DUET_TEST_QUICK ? 'quick' : 'usual'

export const isQuick = form === 'quick'

/** Selects the short or the long form of a test of crashes, races or random input. The short form runs by default. */
export const inForm = <Value>(short: Value, long: Value): Value => (form === 'full' ? long : short)

/** The number of serving threads in tests that are not about threads: the option `--threads` of `test/run.ts`. */
export const testThreads = process.env.DUET_TEST_THREADS ?? '1'

/** The reason to skip a test that inspects a server directly, or counts per thread. */
export const onlyOneThread = testThreads !== '1' && 'is about one thread'

/** The number of runs with random input. */
export const runs = (usual: number, full: number) => (form === 'quick' ? Math.ceil(usual / 5) : inForm(usual, full))

/** The reason to skip a test outside of a full run. */
export const onlyInFull = form === 'full' ? false : 'a long form, for `npm run test:full`'

/** The reason to skip a test in a quick run. */
export const notInQuick = isQuick && 'takes too long for a quick run'
