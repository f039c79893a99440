/** Stands in a request for ten digits that no other request has. */
export const counter = '@@@@@@@@@@'

/** How the body of an answer starts that is an error of GraphQL and has no data. */
export const errorStart = '{"errors"'

export function get(path: string, headers: Readonly<Record<string, string>> = {}): string {
  return [`GET ${path} HTTP/1.1`, 'Host: 127.0.0.1', ...lines(headers), '', ''].join('\r\n')
}

export function post(path: string, sent: object, headers: Readonly<Record<string, string>> = {}): string {
  const body = JSON.stringify(sent)
  const head = [`POST ${path} HTTP/1.1`, 'Host: 127.0.0.1', 'Content-Type: application/json', ...lines(headers)]
  return [...head, `Content-Length: ${Buffer.byteLength(body)}`, '', body].join('\r\n')
}

export function graphql(query: string, variables: Readonly<Record<string, unknown>> = {}): string {
  return post('/graphql', { query, variables })
}

/** Numbers from 1 to `most` in an order that looks random and is the same in every run. */
export function shuffled(most: number): readonly number[] {
  const numbers = Array.from({ length: most }, (_, at) => at + 1)
  let state = 1
  for (let at = most - 1; at > 0; at--) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    const other = state % (at + 1)
    const [a = 0, b = 0] = [numbers[at], numbers[other]]
    numbers[at] = b
    numbers[other] = a
  }
  return numbers
}

function lines(headers: Readonly<Record<string, string>>): string[] {
  return Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
}
