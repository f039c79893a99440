/** The headers of a page that may load what `sources` says, and nothing else. No other site may show it in a frame. */
export function pageHeaders(...sources: readonly string[]): Record<string, string> {
  const always = ["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"]
  return {
    'content-security-policy': ["default-src 'none'", ...sources, ...always].join('; '),
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-cache',
  }
}
