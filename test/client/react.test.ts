import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it, test } from 'node:test'
import type { Page, Route } from 'playwright-core'
import { createElement } from 'react'
import { renderToString } from 'react-dom/server'
import { build } from 'vite'
import { useLive, useQuery, useSession } from '../../client/src/react.ts'
import { startTestApp } from '../support/app.ts'
import { browserMissing, openPage } from '../support/browser.ts'
import { temporaryFolder } from '../support/folder.ts'
import { read } from '../support/graphql.ts'
import { createMember, logIn } from '../support/rest.ts'
import { shared } from '../support/shared.ts'
import { leaveBrowser, sharedBrowser } from '../support/shared-browser.ts'
import { assertSoon } from '../support/wait.ts'
import { connectTo, tokenFor } from './support.ts'

test('the hooks for React render on a server, where nobody is signed in and nothing is read', () => {
  using client = connectTo(
    { url: 'http://duet.test' },
    { storage: { get: () => tokenFor(1, Date.now() / 1000), set: () => {} } },
  )
  const { duet } = client
  function View() {
    const { isLoading } = useQuery(duet, { me: true })
    return [useSession(duet)?.userId ?? 'nobody', isLoading, useLive(duet, { postAdded: true }, () => {}).state].join()
  }
  assert.equal(renderToString(createElement(View)), 'nobody,true,idle')
})

describe('The hooks for React, in StrictMode', { skip: browserMissing }, () => {
  const folder = temporaryFolder()
  before(async () => {
    const settings = { root: import.meta.dirname, configFile: false, logLevel: 'error' } as const
    const lib = { entry: 'react-page.ts', formats: ['es' as const], fileName: () => 'page.js' }
    const define = { 'process.env.NODE_ENV': '"development"' }
    await build({ ...settings, define, build: { outDir: folder.path, emptyOutDir: false, lib } })
    const html = '<!doctype html><title>Hooks</title><body></body><script type="module" src="page.js"></script>'
    writeFileSync(join(folder.path, 'index.html'), html)
  })
  const app = shared(() => startTestApp({ DEMO_DATA: 'true', RATE_LIMIT_MAX: '0', PUBLIC_DIR: folder.path }))
  let token: string
  before(async () => (token = await logIn(app, 'ada@example.com', 'demo-password')))
  after(leaveBrowser)
  after(() => folder[Symbol.dispose]())

  const opened = async () => {
    const { page, troubles, ...rest } = await openPage(await sharedBrowser(), `${app.url}/app/`)
    await page.waitForFunction('globalThis.test')
    const body = () => page.innerText('body')
    const run = (code: string) => page.evaluate(code)
    return { page, troubles, body, run, ...rest }
  }
  const comment = (text: string, postId = 1) =>
    read(app, 'mutation ($postId: ID!, $text: String!) { addComment(postId: $postId, text: $text) { id } }', {
      token,
      variables: { postId, text },
    })

  it('show what is there and what happens, and end everything with the component', async () => {
    await using view = await opened()
    const { post } = await read<{ post: { commentCount: number } }>(app, '{ post(id: 1) { commentCount } }')
    const count = post.commentCount
    await view.run("test.show('post')")
    await view.page.getByText(new RegExp(`^live .*: ${count}, newest none \\| false`)).waitFor()
    assert.equal(await view.run('test.anew'), 1, 'events arrive from now on')
    await comment('Seen at once')
    await view.page.getByText(new RegExp(`: ${count + 1}, newest none Seen at once \\| false`)).waitFor()
    await comment('and later')
    await view.page.getByText(new RegExp(`: ${count + 2}, newest none Seen at once and later \\| false`)).waitFor()
    await read(app, 'mutation { deletePost(id: 1) }', { token })
    await view.page.getByText('no post').waitFor() // the subscription has ended, too
    await view.run("test.show('post', '999999')")
    await view.page.getByText('notFound').waitFor()
    await view.run("test.show('post', '2')")
    await view.page.getByText(/^live \|\s+\| 2 .*, newest none Seen at once and later \| false/).waitFor()

    const requests = await held(view.page)
    await view.run('test.refetch()')
    const route = await requests.next()
    const [failed] = await Promise.all([view.page.waitForEvent('requestfailed'), view.run("test.show('nothing')")])
    assert.equal(failed, route.request(), 'the request under way was cancelled')
    await requests.release()
    assert.deepEqual([await view.body(), await view.run('test.live()')], ['', 'idle'])
    assert.deepEqual(view.troubles, [])
  })

  it('never show an answer for something else, or one that is older', async () => {
    await using view = await opened()
    await view.run("test.show('post', '3')")
    await view.page.getByText(/^live .* \| false/).waitFor()
    const requests = await held(view.page)
    await view.run("test.show('post', '4')")
    const late = await requests.next()
    await view.run("test.show('post', '5')")
    const { post } = await read<{ post: { title: string } }>(app, '{ post(id: 5) { title } }')
    await (await requests.next()).continue()
    await view.page.getByText(post.title).waitFor()
    await late.continue().catch(() => {}) // it was cancelled
    await requests.release()
    const seen = (await view.run('test.seen')) as readonly string[]
    const other = seen.filter(text => /4 |abort/.test(text) && !text.includes('4 no data'))
    assert.deepEqual([other, seen.at(-1)?.includes(post.title)], [[], true])
    assert.equal(await view.run('test.refetches.size'), 1, 'refetch never changes')
  })

  it('show no error of an earlier subscription, and no data of another connection', async () => {
    const post = () =>
      read<{ createPost: { id: string } }>(app, 'mutation { createPost(title: "t", content: "c") { id } }', { token })
    const id = String(Number((await post()).createPost.id) + 1)
    await using view = await opened()
    await view.run(`test.show('post', '${id}')`)
    await view.page.getByText(`notFound | ${id} no post`).waitFor()
    await view.run("test.show('post', '7')")
    await view.page.getByText(/^live \|\s+\| 7 .* \| false/).waitFor()
    assert.deepEqual(await view.run("test.seen.filter(text => text.includes('notFound | 7 '))"), [])
    assert.equal((await post()).createPost.id, id)
    await view.run(`test.show('post', '${id}')`)
    await view.page.getByText(new RegExp(`^live .* ${id} t: 0, newest none \\| false`)).waitFor()
    assert.doesNotMatch(await view.body(), /notFound/)

    const requests = await held(view.page)
    const before = await view.run('test.seen.length')
    await view.run(`test.connectAnew(); test.show('post', '${id}')`)
    await view.page.getByText(`${id} no data, newest none | loading`).waitFor()
    assert.deepEqual(await view.run(`test.seen.slice(${before}).filter(text => !text.includes('no data'))`), [])
    await requests.release()
    await view.page.getByText(new RegExp(`^live \\|\\s+\\| ${id} t: 0, newest none \\| false`)).waitFor()
  })

  it('read once more for all that happened while they read, and keep the data when that fails', async () => {
    await using view = await opened()
    await view.run("test.show('post', '6')")
    await view.page.getByText(/^live .* \| false/).waitFor()
    const before = await view.body()
    const requests = await held(view.page)
    await view.run('test.refetch()')
    const first = await requests.next()
    await view.page.getByText(/\| loading/).waitFor()
    await view.run('for (let n = 0; n < 50; n++) test.refetch()')
    await first.continue()
    const second = await requests.next()
    assert.match(await view.body(), /\| loading/)
    await second.abort()
    await view.page.getByText(/\| false \| .*reached/i).waitFor()
    assert.ok((await view.body()).startsWith(before.slice(0, -' | '.length)), 'the data is still there')
    assert.equal(requests.waiting.length, 0)
    await requests.release()
    await view.run('test.refetch()')
    await view.page.getByText(before, { exact: true }).waitFor()
  })

  it('do not read again for what is no longer shown, and tell the data, the error and the next attempt at once', async () => {
    await using view = await opened()
    await view.run("test.show('answered', '1')")
    await view.page.waitForFunction('test.reads.length === 2') // StrictMode begins twice
    await view.run('test.refetch()')
    await view.run("test.show('answered', '2')")
    await view.page.waitForFunction('test.reads.length === 3')
    await view.run("for (const { id, answer } of [...test.reads]) answer('answer ' + id)")
    await view.page.getByText('2: answer 2').waitFor()
    assert.deepEqual(await view.run('test.reads.map(({ id }) => id)'), ['1', '1', '2'])

    const shows = (text: string) => view.page.getByText(text, { exact: true }).waitFor({ timeout: 5000 })
    const last = (code: string) => view.run(`test.reads.at(-1).${code}`)
    await view.run('test.refetch()')
    await shows('2: answer 2, undefined, loading')
    await view.run('test.refetch()')
    await last("fail(new Error('away'))")
    await shows('2: answer 2, away, loading')
    await last("fail(new Error('still away'))")
    await shows('2: answer 2, still away, done')
    await view.run('test.refetch()')
    await shows('2: answer 2, still away, loading')
    await last("answer('again')")
    await shows('2: again, undefined, done')
    await view.run("test.show('nothing')")
    await view.page.waitForFunction("document.body.innerText === ''")
    await view.run('test.refetch()')
    assert.equal(await view.run('test.reads.length'), 6)
  })

  it('follow the session: each user gets their own data, and nobody that of another', async () => {
    await using view = await opened()
    await view.run("test.show('own')")
    await view.page.getByText(/^user none: Authentication/i).waitFor()
    const anew = (times: number) => view.page.waitForFunction(`test.anew === ${times}`, null, { timeout: 5000 })
    await anew(1)
    await view.run("test.duet.signIn({ email: 'ada@example.com', password: 'demo-password' })")
    await view.page.getByText('user 1: Ada Lovelace').waitFor()
    await anew(2)
    const requests = await held(view.page, '**/users/me')
    await view.run("test.duet.signIn({ email: 'ada@example.com', password: 'demo-password' })")
    assert.deepEqual([await view.body(), requests.waiting.length], ['user 1: Ada Lovelace', 0], 'the same user')
    await view.run("test.duet.signIn({ email: 'grace@example.com', password: 'demo-password' })")
    await view.page.getByText('user 2: undefined').waitFor()
    await requests.release()
    await view.page.getByText('user 2: Grace Hopper').waitFor()
    await anew(3)
    const { id, name, email } = await createMember(app) // of the same role
    await view.run(`test.duet.signIn({ email: '${email}', password: 'right password' })`)
    await view.page.getByText(`user ${id}: ${name}`, { exact: true }).waitFor({ timeout: 5000 })
    await anew(4)
    await view.run('test.duet.signOut()')
    await view.page.getByText(/^user none: Authentication/i).waitFor()
  })
})

/** Holds the requests of a page. The test decides about each of them. */
async function held(page: Page, url = '**/graphql') {
  const waiting: Route[] = []
  await page.route(url, route => void waiting.push(route))
  return {
    waiting,
    async next(): Promise<Route> {
      await assertSoon(() => waiting.length > 0)
      return waiting.shift() ?? assert.fail()
    },
    async release(): Promise<void> {
      await page.unroute(url)
      for (const route of waiting) await route.continue().catch(() => {}) // some were cancelled
    },
  }
}
