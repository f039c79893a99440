// Sends the operations of the API reference, with the token of the user who is signed in.
import { resumed, token } from '../header.js'

addEventListener('submit', async event => {
  event.preventDefault()
  const output = event.target.querySelector('output')
  const answer = await send(event.target).catch(() => ({ line: 'The service did not answer.', text: '' }))
  const pre = Object.assign(document.createElement('pre'), { tabIndex: 0, textContent: answer.text })
  output.replaceChildren(answer.line, ...(answer.text === '' ? [] : [pre]))
})

async function send(form) {
  const { method, path } = form.dataset
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

function readable(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
