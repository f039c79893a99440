/** Work that runs once at a time: whoever asks for it while it runs gets the same outcome. */
export function oneAtATime<Outcome>(work: () => Promise<Outcome>): () => Promise<Outcome> {
  let running: Promise<Outcome> | undefined
  return () => {
    running ??= work().finally(() => {
      running = undefined
    })
    return running
  }
}
