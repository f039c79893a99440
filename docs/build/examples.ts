import { parse, print } from 'graphql'
import { escapeHtml } from '../../src/http/pages/frame.ts'
import { colour } from './code.ts'
import { block } from './html.ts'

/**
 * Examples in Markdown with their answers beside them: blocks of `http` and `graphql` whose parts, between empty lines,
 * consist of a request and its answer. Nothing if the block is no such list.
 */
export function exampleList(text: string, language: string): string | undefined {
  const examples = text.split('\n\n').map(part => part.split(beforeAnswer[language] ?? /$^/))
  if (examples.some(({ length }) => length !== 2)) return undefined
  const shown = examples.map(([request = '', answer = '']) => {
    if (language === 'graphql') {
      const operation = request.length > shortLine ? print(parse(request)) : request
      return pair(colour(operation, language), colour(readable(answer), 'json'))
    }
    const [[line = '', ...headers], body] = headAndBody(request)
    const [method = '', path = ''] = line.split(' ')
    const command = colour(curl(method, path, headers, body), 'bash')
    const [head, json] = headAndBody(answer)
    const named = head.map(field => escapeHtml(field).replace(/^\d.*|^[\w-]+:/, '<span class="hljs-attr">$&</span>'))
    return pair(command, [...named, colour(readable(json), 'json')].join('\n'))
  })
  return shown.join('')
}

/** Where the answer begins: at a status, or at a comment with JSON. */
const beforeAnswer: Readonly<Record<string, RegExp>> = { http: /\n(?=\d{3} )/, graphql: /\n# (?=\{)/ }
const shortLine = 50

function pair(request: string, answer: string): string {
  return `<div class="pair">\n${block(request)}${block(answer.trimEnd())}</div>\n`
}

function headAndBody(message: string): readonly [head: readonly string[], body: string] {
  const [head = '', ...body] = message.split(/\n(?=[[{])/)
  return [head.split('\n'), body.join('\n')]
}

/** The command for a request, with the address of this service. A header or body may name a variable of the shell. */
export function curl(method: string, path: string, headers: readonly string[], body: string): string {
  const type = body === '' ? [] : ['Content-Type: application/json']
  const parts = [
    `curl -i${method === 'GET' ? '' : ` -X ${method}`} ${quoted(`http://127.0.0.1:4000${path}`)}`,
    ...[...headers, ...type].map(header => `-H ${quoted(header)}`),
    ...(body === '' ? [] : [`-d ${quoted(body)}`]),
  ]
  return parts.join(' \\\n  ')
}

function quoted(text: string): string {
  if (/^[\w:/.-]+$/.test(text)) return text
  return text.includes('$') ? `"${text.replaceAll('"', '\\"')}"` : `'${text.replaceAll("'", "'\\''")}'`
}

/** JSON in several lines, unless it is short. `…` may stand for any value. */
function readable(json: string): string {
  if (json.length <= shortLine) return json
  const value: unknown = JSON.parse(json.replaceAll(/(?<=[:[,])(?:…|\{…\})(?=[\]},])/g, '"<$&>"'))
  return JSON.stringify(value, null, 2).replaceAll(/"<(…|\{…\})>"/g, '$1')
}

/**
 * Marks the addresses of the service. Their port is that of the service that shows the page, and the page's script then
 * shows the address by which the browser has reached it, behind a proxy too.
 */
export function markAddresses(html: string): string {
  return html.replaceAll(/(?<!href=")(?:http|ws):\/\/127\.0\.0\.1:4000/g, '<span class="here">$&</span>')
}
