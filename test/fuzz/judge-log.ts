import { password } from './world.ts'

/** What is wrong with a line of the log, if anything is: a fault, or what nobody but the client may know. */
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

/** Of the examples of the OpenAPI document, of the demo data, and of who the requests come from. */
const secrets = ['demo-password', 'a-long-password', password, '@example.com']
