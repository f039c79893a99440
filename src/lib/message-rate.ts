/**
 * Counts the messages of one socket in windows of ten seconds, which begin with a message. Returns a function that says
 * whether one more is allowed; a large message counts as several. `perSecond` 0 means no limit.
 */
export function messageRate(perSecond: number, now: () => number): (bytes: number) => boolean {
  const most = perSecond === 0 ? Number.POSITIVE_INFINITY : perSecond * windowSeconds
  let begun = Number.NEGATIVE_INFINITY
  let count = 0
  return bytes => {
    const at = now()
    // If the clock was set back, a new window starts too.
    if (at < begun || at >= begun + windowSeconds * 1000) {
      begun = at
      count = 0
    }
    count += 1 + Math.floor(bytes / bytesPerMessage)
    return count <= most
  }
}

const windowSeconds = 10
/** 50 messages a second, the default, are 400 KiB a second. */
const bytesPerMessage = 8 * 1024
