import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestApp } from '../support/app.ts'
import { BrowserPage, browserMissing } from '../support/browser.ts'
import { onlyInFull } from '../support/form.ts'
import { read } from '../support/graphql.ts'
import { logIn } from '../support/rest.ts'
import { waitUntil } from '../support/wait.ts'

const editor = (name: string) => `__MONACO.editor.getModels().find(({ uri }) => uri.path.endsWith('${name}'))`
const response = `${editor('response.json')}.getValue()`

for (const size of [
  { width: 375, height: 720 },
  { width: 1200, height: 800 },
]) {
  test(`GraphiQL signs in, runs operations and subscribes with the token, ${size.width} pixels wide`, {
    skip: browserMissing || onlyInFull,
  }, async () => {
    await using app = await startTestApp({ DEMO_DATA: 'true', ACCESS_POLICY: 'enforced', RATE_LIMIT_MAX: '0' })
    await using page = await BrowserPage.open(`${app.url}/graphql`, size)
    await page.until(`globalThis.__MONACO && ${editor('request-headers.json')}`)

    await page.value(`(() => {
      const { email, password } = document.querySelector('#sign-in').elements
      email.value = 'ada@example.com'
      password.value = 'demo-password'
      document.querySelector('#sign-in button').click()
    })()`)
    await page.until("document.querySelector('#sign-in output').textContent === 'Signed in as ada@example.com'")

    const run = async (text: string) => {
      await page.value(`${editor('operation.graphql')}.setValue(${JSON.stringify(text)})`)
      const name = /\w+ (\w+)/.exec(text)?.[1]
      await page.until(`document.querySelector('.graphiql-tab-active').textContent.includes('${name}')`)
      await page.value("document.querySelector('.graphiql-execute-button').click()")
    }
    await run('query Own { me { email } }')
    await page.until(`${response}.includes('ada@example.com')`)
    const wide = await page.value('[document.documentElement.scrollWidth, innerWidth]')
    assert.deepEqual(wide, [size.width, size.width])
    const shown = `document.querySelector('.graphiql-response').getBoundingClientRect()`
    assert.ok((await page.value<number>(`${shown}.width`)) > 300, 'the answer has room')
    assert.ok((await page.value<number>(`${shown}.bottom`)) <= size.height, 'the answer is in the window')

    // Under this policy only an admin may have the e-mail, so the socket must have the token.
    await run('subscription News { postAdded { title author { email } } }')
    const token = await logIn(app, 'ada@example.com', 'demo-password')
    await waitUntil(async () => {
      await read(app, 'mutation { createPost(title: "Seen", content: "x") { id } }', { token })
      return await page.value<boolean>(`${response}.includes('Seen')`)
    })
    const troubles = page.events.filter(({ method }) => /exceptionThrown|loadingFailed|entryAdded/.test(method ?? ''))
    assert.deepEqual(troubles, [])
  })
}
