import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { STATUS_CODES } from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'
import { buildSchema, type GraphQLObjectType, type GraphQLSchema } from 'graphql'
import { operations } from './http/openapi.ts'
import { startTestApp } from './support/app.ts'
import { dataOf, query } from './support/graphql.ts'
import { logIn, sendText } from './support/rest.ts'
import { SocketClient } from './support/sockets.ts'
import { waitUntil } from './support/wait.ts'

const root = join(import.meta.dirname, '..')
const read = (file: string) => readFileSync(join(root, file), 'utf8')

/** The rows of the page about operations, by their names, such as `GET /users`. */
function rowsOf(page: string): ReadonlyMap<string, string> {
  return new Map(Array.from(page.matchAll(/^\| `([A-Z]+ \/[^`]*)` \|.*$/gm), ([row, name = '']) => [name, row]))
}

const http = read('docs/http.md')

test('docs/http.md has every operation of the OpenAPI document, and the statuses that are special to it', () => {
  const rows = rowsOf(http)
  const explainedOnce = /^(400|401|413|415|429|5\d\d|default)$/
  for (const [name, { responses }] of operations) {
    const row = rows.get(name) ?? assert.fail(`docs/http.md has no ${name}`)
    const special = Object.keys(responses).filter(status => !explainedOnce.test(status) && status !== '200')
    for (const status of special) assert.ok(row.includes(status), `${name} does not mention ${status}`)
  }
  assert.deepEqual([...rows.keys()].sort(), [...operations.keys()].sort())
  const common = Object.keys(STATUS_CODES).filter(status => new RegExp(`^\\| ${status} \\|`, 'm').test(http))
  assert.deepEqual(common, ['400', '401', '403', '412', '413', '415', '429', '500', '503'])
})

/** A request and its answer: method and path, headers, an optional body; status, headers, an optional body. */
function parsed(example: string) {
  const [request = '', answer = ''] = example.trim().split(/\n(?=\d{3} )/)
  const part = (text: string) => {
    const [first = '', ...lines] = text.split('\n')
    const body = lines.findIndex(line => /^[[{]/.test(line))
    const headers = body < 0 ? lines : lines.slice(0, body)
    return {
      first,
      headers: headers.map(line => line.split(/: (.*)/s).slice(0, 2) as [name: string, value: string]),
      body: body < 0 ? '' : lines.slice(body).join('\n'),
    }
  }
  return { request: part(request), answer: part(answer) }
}

/** Compares a text with the expected one, in which `…` stands for any value. */
function assertLike(actual: string, expected: string, where: string): void {
  const pattern = expected.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&').replaceAll('…', '.+?')
  assert.match(actual, new RegExp(`^${pattern}$`), where)
}

test('docs/http.md: every example is answered as printed, one after the other', async () => {
  await using app = await startTestApp({ DEMO_DATA: 'true', RATE_LIMIT_MAX: '0' })
  const blocks = Array.from(http.matchAll(/^```http\n(.*?)^```/gms), ([, text = '']) => text)
  const examples = blocks.flatMap(text => text.split('\n\n'))
  assert.ok(examples.length > 25)
  let token = ''
  let etag = ''
  for (const example of examples) {
    const { request, answer } = parsed(example)
    const sent = request.headers.map(([name, value]) => [name, value.replace('$TOKEN', token).replace('$ETAG', etag)])
    const headers: Readonly<Record<string, string>> = Object.fromEntries(sent)
    const response = await sendText(app, request.first, request.body || undefined, undefined, headers)
    assert.equal(`${response.status} ${STATUS_CODES[response.status]}`, answer.first, `${example}${response.body}`)
    for (const [name, value] of answer.headers)
      assertLike(response.headers.get(name.toLowerCase()) ?? '', value, example)
    assertLike(response.body, answer.body, example)
    etag = response.headers.get('etag') ?? ''
    if (request.first === 'POST /tokens') token = JSON.parse(response.body).token
  }
})

const graphql = read('docs/graphql.md')
const schema: GraphQLSchema = buildSchema(read('api/schema.graphql'))

function rootFields(type: GraphQLObjectType | null | undefined) {
  return Object.values(type?.getFields() ?? {}).map(field => ({ kind: type?.name.toLowerCase(), field }))
}

/** The examples of the page: each is one line, and its answer the comment below it. */
const examples = [...graphql.matchAll(/^((?:(\w+) )?\{ (\w+).*)\n# (.*)$/gm)].map(
  ([, text = '', kind = 'query', field = '', answer = '']) => ({ text, kind, field, answer }),
)

test('docs/graphql.md has every field of the root types, with its signature and an example', () => {
  const fields = [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()].flatMap(rootFields)
  for (const { field } of fields) {
    const list = field.args.map(({ name, type }) => `${name}: ${type}`).join(', ')
    const signature = `| \`${field.name}${list === '' ? '' : `(${list})`}: ${field.type}\` |`
    assert.ok(graphql.includes(signature), `docs/graphql.md has no ${signature}`)
  }
  const shown = examples.map(({ kind, field }) => `${kind} ${field}`)
  assert.deepEqual(shown.toSorted(), fields.map(({ kind, field }) => `${kind} ${field.name}`).toSorted())
})

test('docs/graphql.md: every example is answered as printed, one after the other', async () => {
  await using app = await startTestApp({ DEMO_DATA: 'true', ACCESS_POLICY: 'enforced', RATE_LIMIT_MAX: '0' })
  const token = await logIn(app, 'ada@example.com', 'demo-password')
  using client = await SocketClient.connect(app)
  for (const { text, kind, answer } of examples) {
    if (kind !== 'subscription') {
      assertLike((await query(app, text, { token })).body, answer, text)
      continue
    }
    const { events } = client.begin(text)
    await waitUntil(async () => {
      const made = `mutation { createPost(title: "x", content: "x") { id } addComment(postId: 1, text: "x") { id }
        a: createPost(title: "x", content: "x") { id } b: addComment(postId: 1, text: "x") { id } }`
      type Made = Readonly<Record<'createPost' | 'addComment' | 'a' | 'b', { readonly id: string }>>
      const { createPost, addComment, a, b } = dataOf<Made>(await query(app, made, { token }))
      const changed = `mutation { updatePost(id: ${createPost.id}, title: "y") { id } deletePost(id: ${a.id})
        updateComment(id: ${addComment.id}, text: "y") { id } deleteComment(id: ${b.id}) }`
      dataOf(await query(app, changed, { token }))
      return events.length > 0
    })
    assertLike(JSON.stringify({ data: events[0] }), answer, text)
  }
})

test('docs/graphql.md has every code of an error', () => {
  const files = readdirSync(join(root, 'src', 'graphql'), { recursive: true, encoding: 'utf8' })
  const source = files.filter(file => file.endsWith('.ts')).map(file => read(join('src', 'graphql', file)))
  const codes = source.join('\n').match(/(?<=')(?!FST)[A-Z]+(?:_[A-Z]+)+(?=')/g) ?? []
  assert.ok(new Set(codes).size > 15)
  for (const code of new Set(codes)) assert.ok(graphql.includes(`\`${code}\``), code)
})
