import { during } from '../lib/waits.ts'

/**
 * Work that runs in rounds. Whoever asks for one during a round, or during the pause after it, gets one more together
 * with all others who ask meanwhile: under load, there are fewer rounds with more to do in each. A round must not reject.
 * Returns the function that asks for a round.
 */
export function inRounds(round: () => Promise<void>, pauseMs: number): () => void {
  let isWanted = false
  let isRunning = false
  const run = async () => {
    isRunning = true
    while (isWanted) {
      isWanted = false
      await round()
      await new Promise(resolve => setTimeout(resolve, pauseMs))
    }
    isRunning = false
  }
  return () => {
    isWanted = true
    if (!isRunning) void during(undefined, run)
  }
}
