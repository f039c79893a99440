import { resumed, token } from './header.tsx'
import { copyable } from './reading/copy.ts'
import { element } from './reading/dom.ts'

// Sends the operations of the API reference, with the token of the user who is signed in.

/** The newest request of each form. A late answer to another one is not shown. */
const newest = new WeakMap<HTMLFormElement, unknown>()

addEventListener('submit', async event => {
  event.preventDefault()
  const form = event.target
  if (!(form instanceof HTMLFormElement)) return
  const output = form.querySelector('output')
  const sent = send(form).catch(() => ({ line: 'The service did not answer.', text: '' }))
  newest.set(form, sent)
  const answer = await sent
  if (newest.get(form) !== sent) return
  const code = element('pre', { tabIndex: 0 }, answer.text)
  output?.replaceChildren(answer.line, ...(answer.text === '' ? [] : [code]))
  if (answer.text !== '') copyable(code)
  output?.scrollIntoView({ block: 'nearest' })
})

async function send(form: HTMLFormElement): Promise<{ readonly line: string; readonly text: string }> {
  const { method = 'GET', path = '' } = form.dataset
  const query = new URLSearchParams()
  const headers = new Headers()
  let target = path.slice(1)
  for (const { name, value, dataset } of form.querySelectorAll('input')) {
    if (value === '') continue
    if (dataset.in === 'path') target = target.replace(`{${name}}`, encodeURIComponent(value))
    else if (dataset.in === 'query') query.set(name, value)
    else headers.set(name, value)
  }
  const body = form.querySelector('textarea')?.value || null
  if (body !== null) headers.set('Content-Type', 'application/json')
  await resumed
  if (token()) headers.set('Authorization', `Bearer ${token()}`)
  const url = new URL(query.size === 0 ? target : `${target}?${query}`, new URL('..', location.href))
  const response = await fetch(url, { method, headers, body, cache: 'no-store' })
  const shown = [...response.headers].filter(([name]) => name !== 'content-type').map(field => field.join(': '))
  const text = await response.text()
  return { line: `${response.status} ${response.statusText}`, text: [...shown, '', readable(text)].join('\n').trim() }
}

function readable(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
