import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type { Locator } from 'playwright-core'
import { Wire } from '../faults/wire.ts'
import { browserMissing } from '../support/browser.ts'
import { read } from '../support/graphql.ts'
import { logIn } from '../support/rest.ts'
import { metricOf } from '../support/sockets.ts'
import { waitUntil, within } from '../support/wait.ts'
import type { Change } from './console-page.ts'
import { ada, ConsolePage, change, failOne, focus, grace, ownContext, password, startConsole } from './console-page.ts'

describe('posts in the console', { skip: browserMissing }, () => {
  const { app, open } = startConsole()
  let token: string
  before(async () => {
    token = await logIn(app, grace, password)
  })

  /** A change by Grace, somewhere else. */
  const elsewhere = (what: Change, variables: object) => change(app, what, variables, token)
  const write = (title: string, content = 'Some text.') => elsewhere('write', { title, content })

  it('gives a post a page with its comments and a link to share, and the way back leads to the same place in the feed', async () => {
    const own = await write('A post with a page', 'A long text. '.repeat(100))
    const texts = ['A comment', ...Array.from({ length: 50 }, (_, n) => `Word ${n}.`)]
    const comments = texts.map((text, n) => `c${n}: addComment(postId: ${own}, text: "${text}") { id }`)
    await read(app, `mutation { ${comments.join(' ')} }`, { token })
    for (let count = 0; count < 12; count++) await write(`Filler ${count}`, 'Line\n'.repeat(20))
    const permissions = ['clipboard-read', 'clipboard-write']
    await using view = await open({ permissions, viewport: { width: 800, height: 500 }, refusals: true })
    const { page } = view
    const again = page.getByRole('alert').getByRole('button', { name: 'Try again' })
    await view.button('Show older posts').waitFor()
    await failOne(page, 'query Posts')
    await view.button('Show older posts').click()
    await again.click()
    await view.post('A post with a page').getByRole('button', { name: '51 comments' }).click()
    await view.post('A post with a page').getByText('A comment').waitFor()
    const title = page.getByRole('link', { name: 'A post with a page' })
    const cut = view.post('A post with a page').getByRole('button', { name: 'Show the whole text' })
    await cut.click()
    await title.scrollIntoViewIfNeeded()
    const place = await page.evaluate<number>('scrollY')
    assert.ok(place > 2000)
    const alone = page.getByRole('heading', { name: 'A post with a page', level: 1 })
    for (const back of [
      () => page.goBack(),
      () => page.getByRole('link', { name: 'Feed', exact: true }).last().click(),
    ]) {
      await title.click()
      await alone.waitFor()
      assert.equal(await page.evaluate('scrollY'), 0)
      assert.equal(await page.locator('.tabs [aria-current=page]').allInnerTexts().then(String), 'Feed')
      await page.getByText('A comment').waitFor()
      assert.equal(await page.getByRole('button', { name: 'Show the whole text' }).count(), 0)
      assert.match(await page.title(), /^A post with a page/)
      await back()
      await title.waitFor()
      await waitUntil(async () => (await page.evaluate<number>('scrollY')) === place)
      assert.equal(await cut.count(), 0)
    }
    await view.button('Copy the link to “A post with a page”').click()
    const address = await page.evaluate<string>('navigator.clipboard.readText()')
    assert.equal(address, `${app.url}/console#/posts/${own}`)
    await page.goto(address)
    await page.reload()
    await alone.waitFor()
    await view.button('Show more comments').waitFor()
    await failOne(page, 'query Post(')
    await view.button('Show more comments').click()
    await again.click()
    await page.getByText('Word 49.').waitFor()
    assert.deepEqual(await page.locator('.comments .prose').allInnerTexts(), texts)
    assert.equal(await page.getByRole('alert').count(), 0)

    for (const id of ['123456789', 'abc', '0']) {
      await page.goto(`${app.url}/console#/posts/${id}`)
      await page.getByText('There is no such post').waitFor()
    }
  })

  it('shows what others change, comment and delete, in the feed and on the page of a post, with the right number of comments', async () => {
    const id = await write('Written by Grace')
    const other = await write('Soon deleted')
    await using feed = await open()
    await feed.post('Written by Grace').getByRole('button', { name: '0 comments' }).click()
    await feed.post('Soon deleted').waitFor()
    await using alone = await open({ tab: `/posts/${id}`, as: ada })
    await alone.post('Written by Grace').getByText('No comments yet.').waitFor()
    await feed.post('Written by Grace').getByText('No comments yet.').waitFor()
    await waitUntil(async () => (await metricOf(app, 'duet_subscriptions')) === 3 + 3 + 4) // comments have three, too
    const soon = feed.post('Soon deleted')
    await soon.getByRole('button', { name: '0 comments' }).click()
    for (const text of ['Not sent', '']) await soon.getByLabel('Your comment').fill(text)
    await soon.getByRole('button', { name: '0 comments' }).click()
    const both = async (what: (article: Locator) => Locator) => {
      for (const view of [feed, alone]) await what(view.post('Changed by Grace')).waitFor()
    }
    await write('Written elsewhere')
    await feed.post('Written elsewhere').waitFor()
    const said = feed.page.locator('[aria-live=polite]').getByText('New post by Grace Hopper: Written elsewhere')
    await said.waitFor({ state: 'attached' }) // for screen readers
    await elsewhere('edit', { id, title: 'Changed by Grace', content: 'Another text.' })
    await both(article => article.getByText('Another text.'))
    await waitUntil(async () => (await alone.page.title()).startsWith('Changed by Grace'))
    const comment = await elsewhere('comment', { id, text: 'First' })
    const second = await elsewhere('comment', { id, text: 'Second' })
    await both(article => article.getByText('Second'))
    await elsewhere('editComment', { id: comment, text: 'First, changed' })
    await both(article => article.getByText('First, changed'))
    await elsewhere('removeComment', { id: second })
    await both(article => article.getByText('First, changed'))
    await feed.post('Changed by Grace').getByRole('button', { name: '1 comment' }).waitFor()
    assert.equal(await feed.post('Changed by Grace').getByText('Second').count(), 0)

    await alone.page.getByLabel('Your comment').fill('A comment that nobody will read')
    await feed.page.getByLabel('Your comment').fill('A comment in the feed')
    await alone.button('Edit “Changed by Grace”').click()
    await alone.page.getByLabel('Title').fill('An edit that nobody will read')
    await elsewhere('remove', { id: other })
    await soon.waitFor({ state: 'detached' })
    assert.equal(await feed.page.getByText('“Soon deleted” was deleted').count(), 0) // nobody reads it or writes about it
    await elsewhere('remove', { id })
    for (const view of [feed, alone]) {
      await view.page.getByText('“Changed by Grace” was deleted by its author or an admin.').waitFor()
    }
    const unsent = (what: string) => alone.page.locator('figure', { hasText: `${what} that nobody will read` })
    await unsent('An edit').waitFor()
    await alone.page.reload()
    await alone.page.getByRole('heading', { name: 'There is no such post' }).waitFor()
    for (const what of ['A comment', 'An edit']) {
      await unsent(what).getByRole('button', { name: 'Discard it' }).click()
      await unsent(what).waitFor({ state: 'detached' })
    }
    await feed.page.locator('figure', { hasText: 'A comment in the feed' }).waitFor()
    await feed.button('Close').click()
    await feed.page.getByText('was deleted by its author').waitFor({ state: 'detached' })
  })

  it('says so if somebody changes what the user is editing, keeps what is written, and saves the chosen version', async () => {
    const id = await write('To be edited')
    const comment = await elsewhere('comment', { id, text: 'To be edited, too' })
    await using view = await open({ tab: `/posts/${id}`, as: ada, refusals: true })
    const { page } = view
    const stored = async () => {
      const document = 'query ($id: ID!) { post(id: $id) { title content comments { text } } }'
      const { post } = await read<{ post: object }>(app, document, { variables: { id } })
      return post
    }
    const rows = async () => (await page.locator('.versions tbody tr').allInnerTexts()).map(row => row.split('\t'))
    const notice = page.getByText(/^Somebody has changed this/)
    await view.button('Edit “To be edited”').click()
    await page.getByLabel('Title').fill('Mine')
    await elsewhere('edit', { id, title: 'Theirs', content: 'Their text.' })
    await notice.waitFor()
    assert.equal(await page.getByLabel('Title').inputValue(), 'Mine')
    assert.equal(await page.getByLabel('Text').inputValue(), 'Some text.')
    await view.button('Save').click()
    const dialog = page.getByRole('dialog', { name: 'Somebody else was faster' })
    await dialog.waitFor()
    assert.deepEqual(await rows(), [
      ['Title', 'Mine', 'Theirs'],
      ['Text', 'Some text.', 'Their text.'],
    ])
    await page.keyboard.press('Escape')
    assert.equal(await page.getByLabel('Title').inputValue(), 'Mine')
    await view.button('Compare').click()
    await failOne(page, 'mutation Update')
    await view.button('Save my changes').click()
    await dialog.getByRole('alert').waitFor()
    const saved = page.waitForRequest(request => request.postData()?.includes('mutation Update') === true)
    await dialog.getByRole('button', { name: 'Try again' }).click()
    assert.ok((await saved).postDataJSON().variables.ifUpdatedAt) // so that a third version is noticed, too
    await view.post('Mine').getByText('Their text.').waitFor()
    const comments = [{ text: 'To be edited, too' }]
    assert.deepEqual(await stored(), { title: 'Mine', content: 'Their text.', comments })

    await view.button('Edit the comment of Grace Hopper').click()
    await page.getByLabel('The comment', { exact: true }).fill('My words')
    await elsewhere('editComment', { id: comment, text: 'Their words' })
    await notice.waitFor()
    await page.getByLabel('The comment', { exact: true }).press('Control+Enter')
    await dialog.waitFor()
    assert.deepEqual(await rows(), [['Text', 'My words', 'Their words']])
    await view.button('Keep what is stored').click()
    await view.post('Mine').getByText('Their words').waitFor()
    assert.deepEqual(await stored(), { title: 'Mine', content: 'Their text.', comments: [{ text: 'Their words' }] })

    const words = page.getByLabel('The comment', { exact: true })
    for (const text of ['Not these', 'Words about nothing']) {
      await view.button('Edit the comment of Grace Hopper').click()
      assert.equal(await words.inputValue(), 'Their words')
      await words.fill(text)
      if (text === 'Not these') await view.button('Cancel').click()
    }
    await elsewhere('removeComment', { id: comment })
    await page.getByText('This comment was deleted while you were editing it.').waitFor()
    await page.getByText('Words about nothing').waitFor()
    await view.button('Discard it').click()
    await page.getByText('This comment was deleted').waitFor({ state: 'detached' })

    const places = await page.evaluate('history.length')
    await view.button('Delete “Mine”').click()
    await failOne(page, 'mutation Delete')
    await view.button('Delete the post').click()
    await page.getByRole('dialog').getByRole('button', { name: 'Try again' }).click()
    await page.getByRole('heading', { name: 'Feed', level: 1 }).waitFor()
    assert.equal(await page.getByRole('dialog').count(), 0)
    assert.equal(await page.evaluate('history.length'), places) // the way back does not lead to the deleted post
  })

  it('keeps what the user writes into an edit while it is saved, and saves that, too, without a question', async () => {
    const id = await write('To be saved twice')
    await using view = await open({ tab: `/posts/${id}`, as: ada, ...ownContext, refusals: true })
    const { page } = view
    const held = Promise.withResolvers<void>()
    await page.route(/graphql$/, async route => {
      if (route.request().postData()?.includes('mutation Update')) await held.promise
      await route.continue()
    })
    const save = page.locator('button:enabled', { hasText: 'Save' })
    await view.button('Edit “To be saved twice”').click()
    await page.getByLabel('Title').fill('Saved twice')
    await save.click()
    await page.getByLabel('Text').fill('Written before the answer')
    held.resolve()
    await save.or(view.button('Edit “Saved twice”')).waitFor()
    assert.equal(await page.getByLabel('Text').count(), 1, 'it goes on')
    assert.equal(await page.getByLabel('Text').inputValue(), 'Written before the answer')
    assert.equal(await page.getByText('Somebody has changed').count(), 0)
    await save.click()
    await view.post('Saved twice').getByText('Written before the answer').waitFor()
    await save.waitFor({ state: 'detached' })

    await view.context.routeWebSocket(/graphql/, () => {}) // without events, too, it shows what is stored now
    await page.reload()
    await view.button('Edit “Saved twice”').click()
    await page.getByLabel('Title').fill('Mine')
    await elsewhere('edit', { id, title: 'Theirs' })
    await save.click()
    await page.locator('.versions').waitFor()
    assert.match(await page.locator('.versions').innerText(), /Theirs/)
  })

  it('says that the service cannot be reached until it answers, even before events arrive again, and shows what others did meanwhile', async () => {
    const id = await write('Before the break')
    const gone = await write('Deleted in the break')
    const comment = await elsewhere('comment', { id, text: 'Before' })
    await using proxy = await Wire.to(new URL(app.url))
    const options = { ...ownContext, refusals: true } // because of the clock
    await using view = await ConsolePage.open(`http://127.0.0.1:${proxy.port}`, options)
    const { page } = view
    const [banner, live] = [page.getByText('The service cannot be reached'), page.getByText('Live', { exact: true })]
    await view.post('Deleted in the break').waitFor()
    await view.post('Before the break').getByRole('button', { name: '1 comment' }).click()
    await view.post('Before the break').getByText('Before', { exact: true }).waitFor()
    await live.waitFor()
    await page.clock.install()
    proxy.fromClient = () => 'cut before'
    proxy.cutAll()
    await banner.waitFor()
    await page.clock.pauseAt(Date.now() + 60_000)
    await page.getByText('Next attempt in').waitFor()
    await view.post('Before the break').getByText('1 minute ago').first().waitFor({ timeout: 20_000 })
    const attempt = Promise.withResolvers<void>()
    proxy.fromClient = data => {
      if (data.includes('Upgrade: websocket')) attempt.resolve()
      return 'cut before'
    }
    await view.button('Try now').click()
    await within(attempt.promise, 'another attempt')
    await page.clock.resume()
    await elsewhere('edit', { id, title: 'Changed in the break' })
    await elsewhere('editComment', { id: comment, text: 'Changed, too' })
    await elsewhere('comment', { id, text: 'New in the break' })
    await elsewhere('remove', { id: gone })
    await write('Written in the break')
    proxy.fromClient = data => (data.includes('Upgrade: websocket') ? 'cut before' : 'pass')
    await focus(page)
    await waitUntil(async () => (await banner.count()) === 0)
    assert.equal(await live.count(), 0)
    proxy.fromClient = () => 'pass'
    await view.post('Written in the break').waitFor()
    const post = view.post('Changed in the break')
    await post.getByText('Changed, too').waitFor()
    await post.getByRole('button', { name: '2 comments' }).waitFor()
    await view.post('Deleted in the break').waitFor({ state: 'detached' })
    assert.equal(await post.getByText('New in the break').count(), 1)
    assert.equal(await view.post('Written in the break').count(), 1)
    await live.waitFor()
  })

  it('is written with the keyboard: Ctrl-Enter publishes, Escape leaves an edit and asks if something is written', async () => {
    await using view = await open({ as: ada, refusals: true })
    const { page } = view
    const focused = page.getByLabel('Title').and(page.locator(':focus'))
    const leaveAndReturn = async () => {
      for (const tab of ['Orders', 'Feed']) {
        await view.show(tab)
        assert.equal(await page.getByRole('link', { name: tab, exact: true }).getAttribute('aria-current'), 'page')
      }
    }
    await page.getByRole('article').first().waitFor()
    await page.keyboard.press('Tab')
    await page.getByRole('link', { name: 'Skip to the content' }).and(page.locator(':focus')).waitFor()
    await page.keyboard.press('Enter')
    await page.locator('main:focus').waitFor()
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter') // on the button to write a post
    await focused.waitFor()
    await page.keyboard.press('Escape')
    await view.button('Write a post').waitFor()
    const click = "document.querySelector('.composer-line').click(); new Promise(resolve => setTimeout(resolve))"
    assert.equal(await page.evaluate(`${click}.then(() => document.activeElement.name)`), 'title') // no letter is lost
    await page.keyboard.type('By keyboard')
    await page.keyboard.press('Tab')
    await page.keyboard.type('Two\nlines')
    await leaveAndReturn()
    assert.equal(await page.getByLabel('Title').inputValue(), 'By keyboard')
    await page.reload()
    assert.equal(await page.getByLabel('Text').inputValue(), 'Two\nlines')
    assert.equal(await page.evaluate('document.activeElement.name'), undefined) // the user may want to read
    const held = { post: Promise.withResolvers<void>(), comment: Promise.withResolvers<void>() }
    await page.route(/graphql$/, async route => {
      const text = route.request().postData() ?? ''
      if (text.includes('mutation Create')) await held.post.promise
      if (text.includes('mutation Comment')) await held.comment.promise
      await route.continue()
    })
    const press = "title.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', ctrlKey: true, bubbles: true }))"
    await page.evaluate(`{ const title = document.querySelector('[name=title]'); ${press}; ${press} }`) // it repeats
    await page.getByLabel('Title').fill('Written before the answer')
    held.post.resolve()
    const post = view.post('By keyboard')
    await post.waitFor()
    await view.button('Publish').waitFor()
    assert.equal(await page.getByLabel('Title').inputValue(), 'Written before the answer')
    await failOne(page, 'mutation Create')
    await view.button('Publish').click()
    await page.getByRole('alert').waitFor()
    await view.button('Discard').click()
    await view.button('Write a post').click()
    assert.equal(await page.getByLabel('Title').inputValue(), '')
    assert.equal(await page.getByRole('alert').count(), 0)
    await page.getByLabel('Title').fill('Not this')
    await page.keyboard.press('Escape')
    await view.button('Discard it').click()
    await view.button('Write a post').waitFor()
    assert.equal(await post.locator('.prose').innerText(), 'Two\nlines')
    await post.getByRole('button', { name: '0 comments' }).press('Enter')
    const comment = post.getByLabel('Your comment')
    await comment.fill('Sent by keyboard')
    await comment.press('Control+Enter')
    await comment.fill('Written before the answer')
    held.comment.resolve()
    await post.getByText('Sent by keyboard', { exact: true }).and(page.locator('.prose')).waitFor()
    await post.locator('button:enabled', { hasText: 'Send' }).waitFor()
    await leaveAndReturn()
    assert.equal(await comment.inputValue(), 'Written before the answer')
    await failOne(page, 'mutation Comment')
    await comment.press('Meta+Enter')
    await post.getByRole('alert').getByRole('button', { name: 'Try again' }).click()
    await waitUntil(async () => (await comment.inputValue()) === '')
    await post.getByRole('alert').waitFor({ state: 'detached' })

    const edit = view.button('Edit “By keyboard”')
    const question = page.getByRole('dialog', { name: 'Discard what you wrote?' })
    await edit.press('Enter')
    await focused.waitFor()
    await page.keyboard.press('Escape')
    await post.and(page.locator(':focus')).waitFor()
    await edit.press('Enter')
    await page.getByLabel('Text').fill('Given up')
    await view.button('Cancel').press('Control+Enter') // which sends nothing
    await view.button('Cancel').click()
    await edit.press('Enter')
    assert.equal(await page.getByLabel('Text').inputValue(), 'Two\nlines')
    await page.getByLabel('Title').fill('x'.repeat(301))
    await page.getByText('301 of 300 characters').waitFor()
    await page.keyboard.press('Enter')
    await page.getByText('Title is 1 character too long.').waitFor()
    await page.getByLabel('Title').fill('By keyboard')
    await page.getByLabel('Text').fill('Three\nlines')
    await page.reload()
    assert.equal(await page.getByLabel('Text').inputValue(), 'Three\nlines')
    await page.getByLabel('Text').press('Escape')
    await question.getByRole('button', { name: 'Go on writing' }).click()
    await page.getByLabel('Title').fill('   ')
    await page.keyboard.press('Enter')
    await page.getByText('Title must not be empty.').waitFor()
    await page.keyboard.press('Escape')
    await question.getByRole('button', { name: 'Discard it' }).click()
    assert.equal(await post.locator('.prose').first().innerText(), 'Two\nlines')
  })
})
