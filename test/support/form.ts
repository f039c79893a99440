/** Quick: on SQLite, without processes and long measurements. Full: with all long forms. The usual run is between them. */
const form = process.env.DUET_TEST_FULL ? 'full' : process.env.DUET_TEST_QUICK ? 'quick' : 'usual'

export const isQuick = form === 'quick'

/** The form of a test of crashes, races or random input: the short one runs with all other tests. */
export function inForm<Value>(short: Value, long: Value): Value {
  return form === 'full' ? long : short
}

/** How many threads serve in tests that are not about them: those of `test/run.ts --threads`. */
export const testThreads = process.env.DUET_TEST_THREADS ?? '1'

/** Why a test is skipped that looks into a server, or counts per thread. */
export const onlyOneThread = testThreads !== '1' && 'is about one thread'

/** How often random input is tried. */
export function runs(usual: number, full: number): number {
  return form === 'quick' ? Math.ceil(usual / 5) : inForm(usual, full)
}

/** Why a test is skipped that only a full run has. */
export const onlyInFull = form === 'full' ? false : 'a long form, for `npm run test:full`'

/** Why a test is skipped that a quick run has no time for. */
export const notInQuick = isQuick && 'takes too long for a quick run'
