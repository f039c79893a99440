import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { build } from 'vite'
import { startTestApp } from '../support/app.ts'
import { browserMissing, openPage } from '../support/browser.ts'
import { temporaryFolder } from '../support/folder.ts'
import { freePort } from '../support/ports.ts'
import { sharedBrowser } from '../support/shared-browser.ts'

const root = join(import.meta.dirname, '..', '..')
const tutorial = readFileSync(join(root, 'docs', 'tutorial.md'), 'utf8')
const readme = readFileSync(join(root, 'client', 'README.md'), 'utf8')

/** The only code block of this language in one step of the tutorial. */
function only(step: number, language: string): string {
  const [, text = ''] = new RegExp(`^## ${step}\\. (.*?)(?=^## )`, 'ms').exec(tutorial) ?? []
  const blocks = [...text.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\``, 'gms'))]
  assert.equal(blocks.length, 1, `step ${step} has one block of ${language}`)
  return blocks[0]?.[1] ?? ''
}

const main = `import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import App from './App.tsx'
import { Posts } from './Posts.tsx'

createRoot(document.getElementById('root')!).render(<StrictMode><App /><Posts /></StrictMode>)
`
const compilerOptions = {
  ...{ target: 'es2023', module: 'esnext', moduleResolution: 'bundler', types: [], jsx: 'react-jsx', strict: true },
  ...{ noUnusedLocals: true, verbatimModuleSyntax: true, erasableSyntaxOnly: true, allowImportingTsExtensions: true },
  ...{ noEmit: true, skipLibCheck: true },
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
  const browser = await sharedBrowser()

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

  // What the template of step 6 has around its App.tsx, and the example of the client's README, with the client as `npm pack` makes it.
  const project = join(folder.path, 'my-app')
  const packages = join(project, 'node_modules')
  mkdirSync(packages, { recursive: true })
  for (const name of ['react', 'react-dom', 'scheduler', '@types'])
    symlinkSync(join(root, 'node_modules', name), join(packages, name))
  for (const part of ['package.json', 'dist'])
    cpSync(join(root, 'client', part), join(packages, 'duet-client', part), { recursive: true })
  const write = (name: string, text: string) => writeFileSync(join(project, name), text)
  write('index.html', '<!doctype html><div id="root"></div><script type="module" src="main.tsx"></script>')
  write('main.tsx', main)
  write('App.tsx', here(only(6, 'tsx')))
  write('Posts.tsx', here(/^```tsx\n(.*?)^```/ms.exec(readme)?.[1] ?? assert.fail()))
  write('tsconfig.json', JSON.stringify({ compilerOptions, include: ['*.tsx'] }))
  await promisify(execFile)(join(root, 'node_modules', '.bin', 'tsc'), ['-p', project]).catch(({ stdout }) => {
    assert.fail(stdout)
  })
  const settings = { root: project, base: './', configFile: false, logLevel: 'error' } as const
  await build({ ...settings, build: { outDir: join(site, 'react') } })
  await using react = await openPage(browser, `${app.url}/app/react/index.html`)
  await react.page.getByText('Ada Lovelace: Hello from the page').waitFor()
  await react.page.getByRole('button', { name: 'Sign in as Ada' }).click()
  await react.page.getByLabel('Your comment').fill('Hello from React')
  await react.page.getByRole('button', { name: 'Comment' }).click()
  for (const each of [page, react.page]) await each.getByText('Ada Lovelace: Hello from React').waitFor()
  assert.equal(await react.page.getByLabel('For everybody').getByRole('listitem').count(), 5)
  assert.deepEqual(react.troubles, [])

  const expected = /401 \(Unauthorized\)|ERR_CONNECTION_REFUSED|WebSocket/ // caused by the wrong password and by the restart
  const others = troubles.filter(text => !expected.test(text))
  assert.deepEqual(others, [])
})
