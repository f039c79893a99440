import { execFile, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { load } from '../load.ts'

/** A kind of request. `number` differs from request to request; `page` is one of 180. */
export interface Workload {
  readonly name: string
  readonly line: (number: string, page: string) => string
  readonly headers?: (number: string) => Readonly<Record<string, string>>
  readonly body?: (number: string, page: string) => string
}

const run = promisify(execFile)

/** `wrk` is a client in C: it leaves more of the machine to the server than a client in JavaScript. */
export const hasWrk = spawnSync('wrk', ['-v']).error === undefined

/** Sends requests for some seconds and returns how many were answered, and in how many seconds. */
export async function drive(port: number, workload: Workload, connections: number, seconds: number) {
  if (!hasWrk) {
    let number = 0
    const answers = await load(port, () => textOf(workload, String(number++)), connections, seconds * 1000)
    return { answers, seconds }
  }
  const folder = mkdtempSync(join(tmpdir(), 'duet-wrk-'))
  try {
    const script = join(folder, 'requests.lua')
    writeFileSync(script, luaOf(workload))
    const args = ['-t1', `-c${connections}`, `-d${seconds}s`, '-s', script, `http://127.0.0.1:${port}`]
    const { stdout } = await run('wrk', args)
    if (/Non-2xx/.test(stdout)) throw new Error(stdout)
    const [, answers, took] = /(\d+) requests in ([\d.]+)s/.exec(stdout) ?? []
    return { answers: Number(answers), seconds: Number(took) }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

export function textOf(
  { line, headers = () => ({}), body }: Workload,
  number: string,
  page = String(Number(number) % pages),
): string {
  const text = body?.(number, page) ?? ''
  const all = { Host: '127.0.0.1', ...(body && { 'Content-Length': String(text.length) }), ...headers(number) }
  return [
    `${line(number, page)} HTTP/1.1`,
    ...Object.entries(all).map(([name, value]) => `${name}: ${value}`),
    '',
    text,
  ].join('\r\n')
}

/** The same requests as a script of wrk, which puts numbers in place of `{n}` and `{p}`. */
function luaOf(workload: Workload): string {
  const text = textOf(workload, '{n}', '{p}').replace(/Content-Length: \d+\r\n/, '')
  const [head = '', body = ''] = text.split('\r\n\r\n')
  const hasBody = workload.body !== undefined
  return `
    math.randomseed(os.time())
    local n = math.random(1, 1000000) * 1000
    function request()
      n = n + 1
      local id = string.format('%d', n)
      local page = string.format('%d', n % ${pages})
      local body = (${JSON.stringify(body)}):gsub('{n}', id):gsub('{p}', page)
      local head = (${JSON.stringify(head)}):gsub('{n}', id):gsub('{p}', page)
      return head .. ${hasBody ? `'\\r\\nContent-Length: ' .. #body ..` : ''} '\\r\\n\\r\\n' .. body
    end`
}

const pages = 180
