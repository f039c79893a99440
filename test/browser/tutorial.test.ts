import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { startTestApp } from '../support/app.ts'
import { browserMissing, openPage, startBrowser } from '../support/browser.ts'
import { temporaryFolder } from '../support/folder.ts'
import { freePort } from '../support/ports.ts'

const tutorial = readFileSync(join(import.meta.dirname, '..', '..', 'docs', 'tutorial.md'), 'utf8')

/** The code blocks of one step of the tutorial. */
function blocksOf(step: number, language: string): readonly string[] {
  const [, text = ''] = new RegExp(`^## ${step}\\. (.*?)(?=^## )`, 'ms').exec(tutorial) ?? []
  return Array.from(text.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\``, 'gms')), ([, code = '']) => code)
}

function only(step: number, language: string): string {
  const blocks = blocksOf(step, language)
  assert.equal(blocks.length, 1, `step ${step} has one block of ${language}`)
  return blocks[0] ?? ''
}

test('the tutorial leads, step by step, to a page with live comments that survives a restart', {
  skip: browserMissing,
}, async () => {
  using folder = temporaryFolder()
  await using parts = new AsyncDisposableStack()
  const port = await freePort()
  const site = join(folder.path, 'public')
  assert.match(only(1, 'sh'), /^mkdir public$/m)
  mkdirSync(site)
  const database = `sqlite:${join(folder.path, 'duet.db')}`
  const env = { PORT: String(port), DATABASE_URL: database, DEMO_DATA: 'true', PUBLIC_DIR: site }
  let app = parts.use(await startTestApp(env))
  const here = (text: string) => text.replaceAll('127.0.0.1:4000', `127.0.0.1:${port}`)
  const browser = await startBrowser()
  parts.defer(() => browser.close())

  const file = join(site, 'index.html')
  let html = only(2, 'html')
  writeFileSync(file, html)
  const { page, troubles } = parts.use(await openPage(browser, `${app.url}/app/`))
  await page.locator('#posts li').nth(4).waitFor()
  assert.equal(await page.locator('#posts li').count(), 5)

  const insert = (before: string, code: string) => {
    assert.equal(html.split(before).length, 2, `${before} is there once`)
    html = html.replace(before, () => here(code) + before)
    writeFileSync(file, html)
  }
  const comments = page.locator('#comments li')
  insert('</script>', only(3, 'js'))
  await page.reload()
  await comments.first().waitFor()
  assert.match(await page.locator('#posts li').first().innerText(), /\(post 20\)$/) // the command of this step names this id
  const commentInTerminal = async () => {
    const { stdout } = await promisify(execFile)('sh', ['-c', here(only(3, 'sh'))])
    assert.match(stdout, /"addComment":\{"id":/)
  }
  await commentInTerminal()
  await page.getByText('Grace Hopper: Hello from the terminal').waitFor()

  insert('<script type="module">', only(4, 'html'))
  insert('</script>', only(4, 'js'))
  await page.reload()
  await page.getByText('Hello from the terminal').waitFor()
  await page.getByLabel('Password').fill('wrong')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByText('Invalid email or password').waitFor()
  await page.getByLabel('Password').fill('demo-password')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByLabel('Your comment').fill('Hello from the page')
  await page.getByRole('button', { name: 'Comment' }).click()
  await page.getByText('Ada Lovelace: Hello from the page').waitFor()

  const count = await comments.count()
  await app[Symbol.asyncDispose]()
  app = parts.use(await startTestApp(env))
  await commentInTerminal()
  await comments.nth(count).waitFor()
  assert.equal(await comments.count(), count + 1)
  const expected = /401 \(Unauthorized\)|ERR_CONNECTION_REFUSED|WebSocket/ // caused by the wrong password and by the restart
  assert.deepEqual(
    troubles.filter(text => !expected.test(text)),
    [],
  )
})
