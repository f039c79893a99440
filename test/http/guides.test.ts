import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { renderDocumentation } from '../../docs/build/main.ts'
import { renderMarkdown } from '../../docs/build/markdown.ts'
import { startTestApp } from '../support/app.ts'
import { ask } from '../support/http.ts'
import { codeIn } from './html.ts'
import { operations } from './openapi.ts'

const root = join(import.meta.dirname, '..', '..')

test('the committed pages and api/openapi.json equal a new rendering of their sources; `npm run build` writes them', () => {
  const rendered = renderDocumentation()
  const committed = globSync(['api/openapi.json', 'docs/dist/**/*.*'], { cwd: root })
  assert.deepEqual(committed.toSorted(), [...rendered.keys()].toSorted())
  for (const [path, text] of rendered)
    assert.ok(readFileSync(join(root, path), 'utf8') === text, `${path} is old: run \`npm run build\``)
})

test('every file of the documentation is a page and can be searched, no link is broken, and examples have the port of the service', async () => {
  await using app = await startTestApp()
  const pages = new Map<string, string>()
  const anchors: [from: string, address: string][] = []
  const waiting = [`${app.url}/docs`]
  for (let address = waiting.shift(); address !== undefined; address = waiting.shift()) {
    if (pages.has(address)) continue
    const { status, headers, body } = await ask(address, { headers: { accept: 'text/html' } })
    assert.equal(status, 200, address)
    pages.set(address, body)
    const isGuide = address.includes('/docs') && headers.get('content-type') === 'text/html; charset=utf-8'
    if (!isGuide) continue
    for (const [, href = ''] of body.matchAll(/(?:href|src)="([^"]+)"/g)) {
      const target = new URL(href.replaceAll('&#38;', '&'), address)
      if (target.origin !== app.url || target.pathname === '/app/') continue
      if (target.hash !== '') anchors.push([address, target.href])
      waiting.push(target.href.replace(/#.*/, ''))
    }
  }
  for (const [from, target] of anchors) {
    const [address = '', id = ''] = target.split('#')
    assert.ok(pages.get(address)?.includes(` id="${id}"`), `${from} links to ${target}`)
  }
  const index: readonly [string, string, readonly [string, string, string][]][] = JSON.parse(
    (await ask(`${app.url}/docs/search.json`)).body,
  )
  for (const [address, , sections] of index) {
    for (const [id] of sections)
      assert.ok(pages.get(`${app.url}/${address}`)?.includes(` id="${id}"`), `${address}#${id}`)
  }
  const missed = [...pages.keys()].filter(
    page => /\/docs\/(?!.*\.)/.test(page) && !index.some(([address]) => page.endsWith(address)),
  )
  assert.deepEqual(missed, [], 'the search does not know these pages')
  const named = globSync('**/*.md', { cwd: join(root, 'docs') }).map(file => file.replace(/\.md$/, ''))
  for (const name of [...named, 'readme', 'architecture', 'contributing', 'changelog', 'security', 'client'])
    assert.ok(pages.has(`${app.url}/docs/${name}`), `/docs/${name} cannot be reached from /docs`)
  for (const name of ['readme', 'tutorial', 'clients']) {
    const page = pages.get(`${app.url}/docs/${name}`) ?? ''
    assert.ok(page.includes(app.url) && !page.includes('127.0.0.1:4000'), `/docs/${name} names another port`)
  }
})

test('/docs/api shows every operation with its parameters and answers, says what a body needs, and lists all of them', async () => {
  await using app = await startTestApp()
  const { body } = await ask(`${app.url}/docs/api`)
  for (const [name, { operationId, parameters, responses }] of operations) {
    const begin = body.indexOf(`<form class="operation" data-method="${name.replace(' ', '" data-path="')}">`)
    const form = body.slice(begin, body.indexOf('</form>', begin))
    for (const part of [operationId, ...parameters.map(each => `${operationId}-${each.name}`)])
      assert.ok(form.includes(` id="${part}"`), `${name}: ${part}`)
    for (const status of Object.keys(responses)) assert.match(form, new RegExp(`<(b|td)>${status}<`), name)
    assert.ok(body.includes(`<a href="#${operationId}"><code>${name}</code></a>`), name)
  }
  const needing = body.matchAll(/<h3 id="(\w+)">[^\n]*\n<p>[^\n]* It needs a token\.<\/p>/g)
  const first = Array.from(needing, ([, id]) => id).slice(0, 3)
  assert.deepEqual(first, ['readSelf', 'readRole', 'changeRole'], 'and no others before')
  const [fields = ''] = /<textarea id="createUser-body".*?<\/table>/s.exec(body) ?? []
  assert.match(fields, /<code>email<\/code>, required<.*<code>age<\/code><\/td>/s)
})

test('Markdown becomes HTML: headings with anchors, escaped code, tables, and links between files', () => {
  const known: Readonly<Record<string, string>> = {
    'docs/other.md': '../docs/other',
    'README.md': '../docs/readme',
    'docs/images/a.png': '../docs/images/a.png',
  }
  const render = (text: string) => renderMarkdown(text, 'docs/this.md', file => known[file])
  for (const [text, html] of [
    ['# A title', '<h1 id="a-title">A title</h1>'],
    ['## Two `words`, here', '<h2 id="two-words-here">Two <code>words</code>, here <a class="anchor"'],
    ['## Same\n## Same\n### Same', '<h3 id="same-2">Same <a'],
    ['```js\nif (a < b) 1\n```', '>if</span> (a &lt; b) <span class="hljs-number">1</span></code></pre>'],
    ['```\n<plain>\n```', '<pre tabindex="0"><code>&#60;plain&#62;</code></pre>'],
    ['| A |\n|---|\n| `1` |', '<th scope="col">A</th></tr></thead>\n<tbody>\n<tr><td><code>1</code></td>'],
    ['[a](other.md#part) [b](../README.md)', '<a href="../docs/other#part">a</a> <a href="../docs/readme">b</a>'],
    ['[a](../src/app.ts) [b](https://b.test/?a=1&b=2)', '>a <a href="https://b.test/?a=1&#38;b=2">b</a>'],
    ['[here](#part) ![A view](images/a.png)', '<a href="#part">here</a> <img src="../docs/images/a.png" alt="A view">'],
  ] as const)
    assert.ok(render(text).html.includes(html), render(text).html)
  assert.deepEqual(render('## A `b`\n### C').headings, [{ id: 'a-b', html: 'A <code>b</code>' }])
})

test('in guides a request is a command with its answer beside it, in HTTP and in GraphQL', () => {
  const render = (language: string, text: string) => {
    const { html } = renderMarkdown(`\`\`\`${language}\n${text}\n\`\`\``, 'docs/this.md', () => undefined)
    return Array.from(html.matchAll(/<div class="pair">(.*?)<\/div>/gs), ([, pair = '']) => codeIn(pair))
  }
  const http = `PATCH /users/1?a=b
Authorization: Bearer $TOKEN
{"name":"it's"}
200 OK
ETag: "…"
{"id":1,"email":"ada.lovelace.of.london@example.com","age":…,"x":{…}}

GET /health/live
204 No Content`
  const command = `curl -i -X PATCH 'http://127.0.0.1:4000/users/1?a=b' \\
  -H "Authorization: Bearer $TOKEN" \\
  -H 'Content-Type: application/json' \\
  -d '{"name":"it'\\''s"}'`
  assert.deepEqual(render('http', http), [
    [
      command,
      '200 OK\nETag: "…"\n{\n  "id": 1,\n  "email": "ada.lovelace.of.london@example.com",\n  "age": …,\n  "x": {…}\n}',
    ],
    ['curl -i http://127.0.0.1:4000/health/live', '204 No Content'],
  ])
  const short = ['{ post(id: 999) { title } }', '{"data":{"post":null}}']
  const long = ['mutation { likePost(id: 21) { likes title author { name } } }', '{"data":{"likePost":{"likes":1}}}']
  assert.deepEqual(render('graphql', `${short.join('\n# ')}\n\n${long.join('\n# ')}`), [
    short,
    ['mutation {\n  likePost(id: 21) {\n    likes\n    title\n    author {\n      name\n    }\n  }\n}', long[1]],
  ])
  assert.deepEqual(render('graphql', '# a comment\n{ me { id } }'), [])
})
