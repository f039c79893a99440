import { escapeHtml, frame, usualHead } from '../../src/http/pages/frame.ts'
import { colour } from './code.ts'
import { curl, markAddresses } from './examples.ts'
import { block, menu, table } from './html.ts'

type Named<Value> = Readonly<Record<string, Value>>

// The parts of `api/openapi.yaml` that the page shows, with all references resolved.

interface OpenApi {
  readonly info: { readonly description: string }
  readonly tags: readonly { readonly name: string; readonly description: string }[]
  readonly paths: Named<Named<object>>
}

interface Operation {
  readonly method: string
  readonly path: string
  readonly operationId: string
  readonly summary: string
  readonly description?: string
  readonly tags: readonly string[]
  readonly security: readonly object[]
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: Message
  readonly responses: Named<Message>
}

interface Parameter extends Media {
  readonly name: string
  readonly in: string
  readonly required?: boolean
  readonly description: string
}

interface Message {
  readonly description?: string
  readonly headers?: object
  readonly content?: Named<Media>
}

interface Media {
  readonly schema: Schema
  readonly example?: unknown
  readonly examples?: Named<{ readonly value: unknown }>
}

interface Schema extends Named<unknown> {
  readonly type?: string | readonly string[]
  readonly enum?: readonly string[]
  readonly description?: string
  readonly required?: readonly string[]
  readonly properties?: Named<Schema>
  readonly items?: Schema
}

/** The page at `/docs/api`: every operation of the HTTP interface, as a form that sends it with the token of the session. */
export function referencePage(text: string): string {
  const head = `${usualHead('../')}\n<script type="module" src="../try.js"></script>`
  return frame({ title: 'API reference · Duet', root: '../', place: 'docs/api', head, body: markAddresses(text) })
}

/** What it shows, which the search in the pages looks through. */
export function referenceText(document: object): string {
  const { info, tags, paths } = resolved(document)
  const operations = Object.entries(paths).flatMap(([path, { servers: _, ...methods }]) =>
    Object.entries(methods).map(([method, part]) => ({ ...part, path, method: method.toUpperCase() }) as Operation),
  )
  const areas = tags.map(tag => ({ ...tag, of: operations.filter(({ tags: [name] }) => name === tag.name) }))
  const shown = areas.map(({ name, description, of }) => {
    const forms = of.map(operationForm).join('\n')
    return `<h2 id="${name.toLowerCase()}">${name}</h2>\n<p>${inline(description)}</p>\n${forms}`
  })
  const link = ({ operationId: id, method, path }: Operation) =>
    `<li><a href="#${id}"><code>${method} ${escapeHtml(path)}</code></a></li>`
  const links = areas.map(({ name, of }) => `<p>${name}</p>\n<ul>${of.map(link).join('\n')}</ul>`)
  return `<div class="guide reference">
${menu('Operations', links)}
<main id="content" class="text">
<h1>API reference</h1>
<p>${inline(info.description).replaceAll('\n\n', '</p>\n<p>')}</p>
<p>Each operation has an example, as a command for a terminal, beside its answer. <a href="http">The HTTP interface in
words</a> says how to get the <code>$TOKEN</code> of some commands. What you send from this page is sent as the user who is
signed in. <a href="../openapi.json">openapi.json</a> is the same as data.</p>
${shown.join('\n')}
</main>
</div>`
}

/** Puts what a reference names into its place. */
function resolved(document: object): OpenApi {
  const named = (reference: string) =>
    reference.split('/').reduce((part, key) => (key === '#' ? part : Reflect.get(part, key)), document)
  return JSON.parse(JSON.stringify(document, (_key, value) => (value?.$ref === undefined ? value : named(value.$ref))))
}

/** An operation: what can be sent at one side, what comes back at the other. */
function operationForm(operation: Operation): string {
  const { method, path, operationId, summary, description = '', parameters = [], requestBody, responses } = operation
  const [body] = Object.values(requestBody?.content ?? {})
  const [status = ''] = Object.keys(responses).filter(
    name => method !== 'POST' || name !== '200' || !('201' in responses),
  )
  const { [status]: answer, ...others } = responses
  const headers = Object.keys(answer?.headers ?? {}).filter(name => !/^(?:X-Request-Id|RateLimit.*)$/.test(name))
  const [example] = Object.values(answer?.content ?? {}).flatMap(examplesOf)
  return `<form class="operation" data-method="${method}" data-path="${escapeHtml(path)}">
<h3 id="${operationId}"><code>${method} ${escapeHtml(path)}</code> ${inline(summary)} <a class="anchor" href="#${operationId}" aria-label="Link to this operation">#</a></h3>
<p>${inline(description)}${operation.security.length === 1 ? ' It needs a token.' : ''}</p>
<div class="sides">
<div><b>Request</b>${block(colour(exampleRequest(operation), 'bash'))}</div>
<div class="answer">
<output aria-label="Answer"><b>${status}</b> ${inline(answer?.description ?? '')}${
    headers.length === 0 ? '' : ` With ${headers.map(name => `<code>${name}</code>`).join(', ')}.`
  }${example === undefined ? '' : block(colour(textOf(example), 'json'))}</output>
<details><summary>Other answers: ${Object.keys(others).join(', ')}</summary>
${table(['Status', 'When'], Object.entries(others).map(answerRow))}</details>
</div>
<div>
${parameters.map(parameter => parameterField(operationId, parameter)).join('\n')}
${body === undefined ? '<button>Send</button>' : bodyField(operationId, body)}
</div>
</div>
</form>`
}

/** What the form sends as it is filled in, as a command. */
function exampleRequest({ method, path, security, parameters = [], requestBody }: Operation): string {
  const given = (place: string) => parameters.filter(each => each.in === place && each.example !== undefined)
  const target = given('path').reduce((text, { name, example }) => text.replace(`{${name}}`, String(example)), path)
  const query = new URLSearchParams(Object.fromEntries(given('query').map(({ name, example }) => [name, `${example}`])))
  const headers = given('header').map(({ name, example }) => `${name}: ${example}`)
  if (security.length === 1) headers.unshift('Authorization: Bearer $TOKEN')
  const [body] = Object.values(requestBody?.content ?? {}).flatMap(examplesOf)
  return curl(method, query.size === 0 ? target : `${target}?${query}`, headers, body === undefined ? '' : textOf(body))
}

function parameterField(operationId: string, { name, in: place, required, description, schema, example }: Parameter) {
  const id = `${operationId}-${name}`
  const value = example === undefined ? '' : ` value="${escapeHtml(String(example))}"`
  return `<p class="field"><label for="${id}"><code>${name}</code> in the ${place}${required ? ', required' : ''}</label>
<input id="${id}" name="${name}" data-in="${place}"${value}${required ? ' required' : ''} aria-describedby="${id}-hint">
<span class="hint" id="${id}-hint">${sentence(schema)} ${inline(description)}</span></p>`
}

function bodyField(operationId: string, media: Media): string {
  const text = textOf(examplesOf(media)[0])
  const rows = fieldsIn(media.schema).map(([name, schema, required]) => [
    `<code>${name}</code>${required ? ', required' : ''}`,
    `${sentence(schema)} ${inline(schema.description ?? '')}`,
  ])
  return `<p class="field"><label for="${operationId}-body">Body</label>
<textarea id="${operationId}-body" rows="${Math.min(text.split('\n').length, 12)}" spellcheck="false">${escapeHtml(text)}</textarea></p>
<button>Send</button>
<details><summary>Fields of the body</summary>
${table(['Field', 'Value'], rows)}</details>`
}

/** The fields of an object, and of the objects in its lists. */
function fieldsIn(schema: Schema, prefix = ''): readonly (readonly [name: string, Schema, required: boolean])[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => [
    [prefix + name, field, schema.required?.includes(name) ?? false] as const,
    ...fieldsIn(field.items ?? {}, `${prefix}${name}[].`),
  ])
}

/** What a value must be, such as `Integer, minimum 1, maximum 150.` */
function sentence({ type, enum: values, ...keywords }: Schema): string {
  const kind = values === undefined ? [type ?? []].flat().join(' or ') : values.join(' or ')
  const bounds = Object.entries(keywords).filter(([name]) => /^(?:min|max|exclusive|default)/.test(name))
  const said = bounds.map(([name, value]) => `${name.replaceAll(/[A-Z]/g, ' $&').toLowerCase()} ${value}`)
  const text = [kind, ...said].join(', ')
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`
}

function answerRow([status, { description = '', content = {} }]: [string, Message]): readonly string[] {
  const examples = Object.values(content).flatMap(examplesOf) as readonly { readonly error?: string }[]
  const texts = examples.map(example => `<br><code>${escapeHtml(example.error ?? JSON.stringify(example))}</code>`)
  return [status, inline(description) + texts.join('')]
}

function textOf(example: unknown): string {
  return typeof example === 'string' ? example : JSON.stringify(example, null, 2)
}

function examplesOf({ example, examples = {} }: Media): readonly unknown[] {
  return example === undefined ? Object.values(examples).map(({ value }) => value) : [example]
}

/** The texts of the document contain no other Markdown than code. */
function inline(text: string): string {
  return escapeHtml(text).replaceAll(/`([^`]+)`/g, '<code>$1</code>')
}
