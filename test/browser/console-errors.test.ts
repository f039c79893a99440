import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Wire } from '../faults/wire.ts'
import { startTestApp } from '../support/app.ts'
import { browserMissing } from '../support/browser.ts'
import { bodyOf, createUser, logIn, send } from '../support/rest.ts'
import { ada, ConsolePage, ownContext, password, startConsole } from './console-page.ts'

describe('the console, when a request fails', { skip: browserMissing }, () => {
  const limit = { RATE_LIMIT_PATHS: '/users', RATE_LIMIT_MAX: '50', RATE_LIMIT_WINDOW_MS: '4000' }
  const clock = { stopped: 0, now: () => clock.stopped || Date.now() }
  const { app, open } = startConsole(limit, { clock })

  async function writeDraft(view: ConsolePage, title: string): Promise<void> {
    const { page } = view
    await view.button('Write a post').click()
    await page.getByLabel('Title').fill(title)
    await page.getByLabel('Text').fill('Something long that nobody wants to write twice.')
  }

  it('shows that it is offline, keeps the draft over a reload, and sends it later', async () => {
    await using view = await open({ as: ada, ...ownContext, refusals: true })
    const { page } = view
    await writeDraft(view, 'Written on a train')
    await view.context.setOffline(true)
    await page.getByText('You are offline').waitFor()
    await view.show('Users')
    await page.getByRole('alert').waitFor()
    await view.context.setOffline(false)
    await page.getByRole('row', { name: /Ada/ }).waitFor({ timeout: 20_000 }) // it is read now
    await view.show('Feed')
    await page.getByText('You are offline').waitFor({ state: 'hidden' })
    await page.reload()
    assert.equal(await page.getByLabel('Title').inputValue(), 'Written on a train')
    await page.getByRole('article').first().waitFor() // the feed is read
    await view.context.setOffline(true)
    await view.button('Publish').click()
    const notice = page.getByRole('form').getByRole('alert')
    await notice.getByText('The service could not be reached').waitFor()
    await view.context.setOffline(false)
    await page.getByLabel('Title').fill('Finished on a train')
    await notice.getByRole('button', { name: 'Try again' }).click()
    await view.post('Finished on a train').waitFor()
    await view.button('Write a post').waitFor()
  })

  it('asks the user to sign in again when the session has ended, keeps the draft, and then repeats the request', async () => {
    await using view = await open({ as: ada, ...ownContext, refusals: true })
    const { page } = view
    const ended = page.getByRole('dialog', { name: 'Your session has ended' })
    // Without a socket, the page learns from the answer to its next request that the session has ended.
    await view.context.routeWebSocket(/graphql/, () => {})
    await page.reload()
    await writeDraft(view, 'Sent with an old token')
    const publishWithoutSession = async () => {
      await send(app, 'DELETE /tokens', undefined, await logIn(app, ada, password))
      await view.button('Publish').dispatchEvent('click') // a read of the feed may have opened the dialog already
      await ended.waitFor()
    }
    await publishWithoutSession()
    await page.keyboard.press('Escape')
    await view.button('Sign in').click()
    await view.fillIn(ada)
    assert.equal(await page.getByLabel('Title').inputValue(), 'Sent with an old token')
    await publishWithoutSession()
    assert.equal(await ended.getByLabel('E-mail').inputValue(), ada)
    assert.equal(await ended.getByRole('tab').count(), 0) // a new account could not go on
    await ended.getByLabel('Password').fill('wrong password')
    await ended.getByRole('button', { name: 'Sign in' }).click()
    await ended.getByText('The e-mail or the password is wrong.').waitFor()
    assert.equal(await ended.getByLabel('E-mail').inputValue(), ada)
    await view.fillIn(ada)
    await view.post('Sent with an old token').waitFor()
    assert.equal(await view.post('Sent with an old token').count(), 1)
  })

  it('shows a countdown after too many requests, and then allows another try', async () => {
    await using view = await open({ tab: 'users', as: ada, refusals: true })
    const { page } = view
    const search = page.getByLabel('Find by name or e-mail')
    const again = page.getByRole('alert').getByRole('button', { name: 'Try again' })
    await page.getByRole('row', { name: /Ada/ }).waitFor()
    clock.stopped = Date.now() // so that the window does not end
    while ((await send(app, 'GET /users?limit=1')).status !== 429) {}
    await search.fill('ad')
    const notice = page.locator('[role=alert]:has(button:disabled)')
    await notice.locator('[aria-live=off]', { hasText: /You can go on in [1-4] s\./ }).waitFor({ timeout: 20_000 })
    clock.stopped = 0
    await page.getByText('You can go on now.').waitFor({ timeout: 20_000 })
    await again.click()
    await page.getByRole('alert').waitFor({ state: 'detached' })
    await page.getByRole('row', { name: /Ada/ }).waitFor()
    await view.show('Requests')
    assert.match(await page.getByRole('row', { name: /429/ }).first().innerText(), /\b0 left/) // which is not no limit
  })

  it('says when events go on after too many requests, and not that the service cannot be reached', async () => {
    clock.stopped = Date.now()
    const settings = { RATE_LIMIT_PATHS: '/graphql', RATE_LIMIT_MAX: '30', RATE_LIMIT_WINDOW_MS: '3000' }
    await using limited = await startTestApp(settings, { clock })
    await using proxy = await Wire.to(new URL(limited.url))
    await using view = await ConsolePage.open(`http://127.0.0.1:${proxy.port}`, { tab: '/requests', refusals: true })
    const { page } = view
    await page.getByText('Live', { exact: true }).waitFor()
    while ((await send(limited, 'POST /graphql', { query: '{ __typename }' })).status !== 429) {}
    proxy.cutAll()
    const banner = page.locator('main [role=status]')
    await banner.waitFor()
    assert.match(await banner.innerText(), /^Too many requests\n.* You can go on in [1-4] s\.$/)
    assert.equal(await banner.locator('[aria-hidden=true]').getByText('You can go on in').count(), 1) // not each second
    clock.stopped = 0 // the window ends
    await page.getByText('Live', { exact: true }).waitFor()
    await page.getByText('Too many requests').waitFor({ state: 'hidden' })
  })

  it('shows both versions if another user has changed the same data, and saves the chosen one', async () => {
    const user = await createUser(app, { name: 'Mary Somerville', email: 'mary@example.com', age: 40, password })
    await using view = await open({ tab: `/users/${user.id}`, as: user.email, refusals: true })
    const { page } = view
    const change = async (name: string, others: object) => {
      await view.button('Edit').click()
      await page.getByLabel('Age').fill('41')
      bodyOf(await send(app, `PATCH /users/${user.id}`, others))
      await view.button('Save').click()
      await page.getByRole('dialog', { name: 'Somebody else was faster' }).getByText('You changed: age.').waitFor()
      assert.deepEqual(await page.locator('.versions tbody tr').allInnerTexts(), [
        'Name\tMary Somerville\tMary Somerville',
        `E-mail\tmary@example.com\t${name}`,
        'Age\t41\t40',
      ])
    }
    await view.button('Edit').click()
    await page.getByLabel('E-mail').fill(ada)
    await view.button('Save').click()
    const taken = page.getByText('E-mail is already in use.') // which is another conflict
    const compared = page.getByRole('dialog', { name: 'Somebody else was faster' })
    await taken.or(compared).waitFor()
    assert.equal(await compared.count(), 0)
    await page.keyboard.press('Escape')
    await view.button('Discard it').click()
    const stored = async () => bodyOf(await send(app, `GET /users/${user.id}`))
    await change('kept@example.com', { email: 'kept@example.com' })
    await view.button('Keep what is stored').click()
    await page.getByRole('dialog').waitFor({ state: 'hidden' })
    assert.equal(await page.getByRole('link', { name: 'kept@example.com' }).count(), 1)
    assert.deepEqual(await stored(), { ...user, email: 'kept@example.com' })
    bodyOf(await send(app, `PATCH /users/${user.id}`, { email: 'mary@example.com' }))
    await page.reload()
    await change('somerville@example.com', { email: 'somerville@example.com' })
    bodyOf(await send(app, `PATCH /users/${user.id}`, { name: 'Mary Greig' })) // once more
    await view.button('Save my changes').click()
    await page.locator('.versions').getByText('Mary Greig').waitFor()
    await view.button('Save my changes').click()
    await page.getByText('Mary Greig is saved').waitFor() // the dialog shows the age, too
    await page.getByRole('region', { name: 'Profile' }).getByText('41', { exact: true }).waitFor()
    assert.deepEqual(await stored(), { ...user, name: 'Mary Greig', email: 'somerville@example.com', age: 41 })
    await view.account.getByText('somerville@example.com', { exact: true }).waitFor({ state: 'attached' }) // in its menu
  })
})
