/** The problem with a list of GraphQL errors, if there is one. */
export function errorsProblem(errors: unknown): string | undefined {
  if (!Array.isArray(errors) || errors.length === 0) return `no errors, but ${JSON.stringify(errors)}`
  for (const each of errors) {
    const { message, extensions, locations, path, ...more } = Object(each)
    const isShaped = typeof message === 'string' && message !== '' && Object.keys(more).length === 0
    const code = extensions?.code
    if (!isShaped || typeof code !== 'string') return `an error of another shape: ${JSON.stringify(each).slice(0, 300)}`
    if (message.length > longest) return `a message of ${message.length} characters: ${message.slice(0, 300)}`
    if (ours.has(code)) return `${code}: ${message.slice(0, 300)}`
  }
  return undefined
}

/** The longest allowed message. Longer ones would quote too much of the request. */
const longest = 2_000

/** The codes that mean a fault or an overload of the service. */
const ours = new Set([
  ...['INTERNAL_SERVER_ERROR', 'SERVICE_UNAVAILABLE', 'RATE_LIMITED', 'SUBSCRIPTION_TOO_EXPENSIVE'],
])
