import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestApp } from '../support/app.ts'
import { browserMissing, openPage } from '../support/browser.ts'
import { onlyInFull } from '../support/form.ts'
import { read } from '../support/graphql.ts'
import { logIn } from '../support/rest.ts'
import { sharedBrowser } from '../support/shared-browser.ts'
import { waitUntil } from '../support/wait.ts'

const skip = browserMissing || onlyInFull
const editor = (name: string) => `__MONACO.editor.getModels().find(({ uri }) => uri.path.endsWith('${name}'))`
const response = `${editor('response.json')}.getValue()`

for (const size of [
  { width: 375, height: 720 },
  { width: 1200, height: 800 },
]) {
  test(`GraphiQL leads to the sign-in and back, runs operations and subscribes with the token, ${size.width} pixels wide`, {
    skip,
  }, async () => {
    await using app = await startTestApp({ DEMO_DATA: 'true', ACCESS_POLICY: 'enforced', RATE_LIMIT_MAX: '0' })
    await using opened = await openPage(await sharedBrowser(), `${app.url}/graphql`, { viewport: size })
    const { page, troubles } = opened
    const until = (expression: string) => waitUntil(() => page.evaluate<boolean>(`!!(${expression})`))
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('button', { name: 'Use the demo login' }).click()
    await page.waitForURL(/graphql/)
    await until(`globalThis.__MONACO && ${editor('request-headers.json')}`)

    const run = async (text: string) => {
      await page.evaluate(`${editor('operation.graphql')}.setValue(${JSON.stringify(text)})`)
      const name = /\w+ (\w+)/.exec(text)?.[1]
      await until(`document.querySelector('.graphiql-tab-active').textContent.includes('${name}')`)
      await page.locator('.graphiql-execute-button').click()
    }
    await run('query Own { me { email } }')
    await until(`${response}.includes('ada@example.com')`)
    const wide = await page.evaluate('[document.documentElement.scrollWidth, innerWidth]')
    assert.deepEqual(wide, [size.width, size.width])
    const shown = await page.locator('.graphiql-response').boundingBox()
    assert.ok(shown !== null && shown.width > 300, 'the answer pane is large enough')
    assert.ok(shown.y + shown.height <= size.height, 'the answer pane is visible')

    // Under this policy only an admin may read e-mails, so the socket must have the token.
    await run('subscription News { postAdded { title author { email } } }')
    const token = await logIn(app, 'ada@example.com', 'demo-password')
    await waitUntil(async () => {
      await read(app, 'mutation { createPost(title: "Seen", content: "x") { id } }', { token })
      return await page.evaluate<boolean>(`${response}.includes('Seen')`)
    })
    assert.deepEqual(troubles, [])
  })
}
