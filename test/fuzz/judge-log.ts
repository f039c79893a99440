import { password } from './world.ts'

/** The problem with a log line, if there is one: an internal error, or a secret of the client. */
export function lineProblem(line: string, token: string): string | undefined {
  let level: unknown
  try {
    level = JSON.parse(line).level
  } catch {
    return `a line that is no JSON in the log: ${line.slice(0, 300)}`
  }
  if (Number(level) >= 50) return `a fault in the log: ${line.slice(0, 1500)}`
  const secret = [...secrets, token].find(each => line.includes(each))
  return secret === undefined ? undefined : `a secret in the log: ${line.slice(0, 1500)}`
}

/** Secrets of the OpenAPI examples, of the demo data, and of the users that send the requests. */
const secrets = ['demo-password', 'a-long-password', password, '@example.com']
