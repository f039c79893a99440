import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Page, Request } from 'playwright-core'
import { startMailServer } from '../mail/mail-server.ts'
import { startTestApp } from '../support/app.ts'
import { browserMissing } from '../support/browser.ts'
import { tokenKeys } from '../support/keys.ts'
import { bodyOf, createOrder, createUser, logIn, send, somebody } from '../support/rest.ts'
import { shared } from '../support/shared.ts'
import { waitUntil } from '../support/wait.ts'
import { ada, ConsolePage, failOne, grace, ownContext, password, settle, startConsole } from './console-page.ts'

describe('accounts in the console', { skip: browserMissing }, () => {
  const mail = shared(() => startMailServer())
  const { app, open } = startConsole(() => ({ ...mail.env, ACCESS_POLICY: 'enforced' }))
  const places = (page: Page) => page.getByRole('navigation', { name: 'Console' }).getByRole('link').allInnerTexts()
  const described = async (page: Page, label: string) => {
    const ids = await page.getByLabel(label, { exact: true }).getAttribute('aria-describedby')
    const texts = (ids ?? '').split(' ').map(id => page.locator(`[id="${id}"]`).innerText())
    return (await Promise.all(texts)).join(' ')
  }

  it('creates an account beside signing in, says at the field what is wrong with it, and lets the user sign in if that failed at first', async () => {
    await using view = await open({ tab: '/sign-in', refusals: true })
    const { page } = view
    const tab = (name: string) => page.getByRole('tab', { name, exact: true })
    await page.getByLabel('E-mail').fill(grace)
    assert.equal(await page.getByLabel('Password').getAttribute('autocomplete'), 'current-password')
    await tab('Sign in').focus()
    await page.keyboard.press('ArrowRight')
    await page.getByRole('heading', { name: 'Create an account', level: 1 }).waitFor()
    await tab('Create an account').and(page.locator(':focus')).waitFor()
    assert.equal(await page.title(), 'Create an account · Duet console')
    assert.equal(await tab('Sign in').getAttribute('tabindex'), '-1') // Tab leads into the form
    assert.equal(new URL(page.url()).hash, '#/sign-up')
    assert.equal(await page.getByLabel('E-mail').inputValue(), grace)
    assert.match(await described(page, 'Password'), /^8 to 128 characters/)
    for (const [label, kind] of Object.entries({ Name: 'name', 'E-mail': 'email', Password: 'new-password' })) {
      assert.equal(await page.getByLabel(label).getAttribute('autocomplete'), kind)
    }
    await page.getByLabel('Name').fill('Mary Somerville')
    await page.getByLabel('Password').fill('long enough')
    await view.button('Create the account').click()
    await page.getByText('E-mail is already in use.').waitFor()
    assert.match(await described(page, 'E-mail'), /E-mail is already in use\./)
    const focused = page.locator('[name=email]:focus')
    await focused.waitFor()
    assert.equal(await focused.getAttribute('aria-invalid'), 'true')
    assert.equal(await page.getByRole('alert').count(), 0)
    await view.button('Create the account').click()
    await focused.waitFor({ timeout: 20_000 }) // again
    await page.getByLabel('E-mail').fill('mary.s@example.com')
    assert.equal(await page.getByText('E-mail is already in use.').count(), 0)
    await view.button('Show').click()
    assert.equal(await page.getByLabel('Password').getAttribute('type'), 'text')
    assert.equal(await view.button('Hide').getAttribute('aria-pressed'), 'true')
    await page.keyboard.press('Enter')
    assert.equal(await page.getByLabel('Password').getAttribute('type'), 'password')
    await page.route(/tokens$/, route => route.abort(), { times: 1 })
    await page.getByLabel('Password').press('Enter')
    await page.getByText('Your account is created').waitFor()
    await page.getByRole('heading', { name: 'Sign in', level: 1 }).waitFor() // which can be tried again
    assert.equal(await page.getByLabel('E-mail').inputValue(), 'mary.s@example.com')
    await page.getByLabel('Password').fill('long enough')
    await view.button('Sign in').click()
    await view.button('Write a post').waitFor()
    assert.deepEqual(await places(page), ['Feed', 'Orders', 'Payments', 'Account'])
    await logIn(app, 'mary.s@example.com', 'long enough')
  })

  it('sets a forgotten password with the link of a mail, once, and keeps the secret out of the address', async () => {
    const { email } = await createUser(app, { password })
    await using view = await open({ ...ownContext, refusals: true })
    const { page } = view
    const ask = async (whom: string) => {
      await page.getByLabel('E-mail').fill(whom)
      await view.button('Send me a link').click()
      return page.getByRole('status').filter({ hasText: 'If an account has this e-mail' }).innerText()
    }
    await page.getByRole('banner').getByRole('button', { name: 'Sign in' }).click()
    await page.getByLabel('E-mail').fill(email)
    await page.getByRole('link', { name: 'I forgot my password' }).click()
    await page.getByRole('dialog').waitFor({ state: 'hidden' })
    assert.equal(await page.locator('input[name=email]:focus').inputValue({ timeout: 20_000 }), email)
    const said = await ask(email)
    const secret = /#\/reset\/(\S+)/.exec((await mail.received()).text)?.[1] ?? assert.fail()
    await view.button('Nothing has come? Ask again').click()
    assert.equal(await ask('nobody@example.com'), said)

    const link = `${app.url}/console#/reset/${secret}`
    let token = await logIn(app, email, password) // who is signed in here, too, forgets a password
    const follow = async () => {
      await page.goto(`${app.url}/docs`)
      await page.evaluate(`localStorage.setItem('duet-token', '${token}')`)
      await page.goto(link)
      await view.account.waitFor()
      await page.getByLabel('New password').fill('remembered now')
      assert.equal(new URL(page.url()).hash, '#/reset')
      await page.goto(link) // once more
      await waitUntil(() => new URL(page.url()).hash === '#/reset')
      await view.button('Set the password').click()
    }
    await follow()
    await page.getByText('Your password is set. Sign in with it.').waitFor()
    assert.equal(await view.account.count(), 0) // all sessions of the user have ended
    await page.getByRole('heading', { name: 'Sign in', level: 1 }).waitFor()
    assert.equal(await page.getByRole('dialog').count(), 0)
    await page.getByLabel('E-mail').fill(email)
    await page.getByLabel('Password').fill('remembered now')
    await view.button('Sign in').click()
    await view.button('Write a post').waitFor()
    assert.ok(!(await page.evaluate<string>('JSON.stringify({ ...sessionStorage, ...localStorage })')).includes(secret))
    const history = 'JSON.stringify(navigation.entries().map(({ url }) => url))'
    assert.ok(!(await page.evaluate<string>(history)).includes(secret))
    token = await logIn(app, email, 'remembered now')
    await follow()
    await page.getByText('This link is no longer valid').waitFor()
    await page.getByRole('link', { name: 'Get a new link' }).click()
    await view.button('Send me a link').waitFor()
  })

  it('says so where only admins create accounts, and where no mail is set up', async () => {
    const production = { NODE_ENV: 'production', EXPLORERS: 'on', TOKEN_KEYS: tokenKeys }
    await using closed = await startTestApp({ ...production, SIGN_UP: 'closed' })
    await using view = await ConsolePage.open(closed.url, { tab: '/sign-up', refusals: true })
    const { page } = view
    await page.getByText('Here only admins create accounts').waitFor()
    assert.equal(await page.getByRole('tab').count(), 0)
    assert.equal(await page.title(), 'Sign in · Duet console')
    await page.getByRole('link', { name: 'I forgot my password' }).click()
    await page.getByLabel('E-mail').fill(ada)
    await view.button('Send me a link').click()
    await page.getByText('This service sends no mail').waitFor()
    await view.show('Feed')
    await page.getByText('Nothing has been written yet').waitFor()
  })

  it('leads visitors, members and admins to what they may see', async () => {
    await using view = await open({ tab: '/account', refusals: true })
    const { page } = view
    await page.getByText('Sign in to see this').waitFor()
    assert.deepEqual(await places(page), ['Feed'])
    await view.button('Sign in to go on').click()
    await view.fillIn(ada)
    await page.getByRole('heading', { name: 'Account', level: 1 }).waitFor()
    assert.deepEqual(await places(page), ['Feed', 'Users', 'Orders', 'Payments', 'Requests', 'Health', 'Account'])
    const addressOf = (name: string) => page.getByRole('link', { name }).getAttribute('href')
    assert.deepEqual([await addressOf('My orders'), await addressOf('My page')], ['#/orders?user=1', '#/users/1'])

    await page.getByText('Live', { exact: true }).waitFor()
    await page.getByLabel('Name').fill('Written by Ada')
    await send(app, 'DELETE /tokens', undefined, await logIn(app, ada, password))
    await page.getByRole('dialog', { name: 'Your session has ended' }).waitFor()
    await view.fillIn(grace)
    await view.account.getByText('Grace Hopper').first().waitFor()
    await waitUntil(async () => (await page.getByLabel('Name').inputValue()) === 'Grace Hopper')
    assert.deepEqual(await places(page), ['Feed', 'Orders', 'Payments', 'Account'])
    await view.account.click()
    await view.button('Sign out').click()
    await view.button('Sign in').click()
    assert.equal(await page.getByLabel('E-mail').inputValue(), '')
  })

  it('saves the profile of a member, counts a long name instead of cutting it, and shows both versions of a conflict', async () => {
    const { id, name, email } = await createUser(app, { password })
    const token = await logIn(app, email, password)
    await using view = await open({ tab: '/account', as: email, refusals: true })
    const { page } = view
    const stored = async () => bodyOf<Record<string, unknown>>(await send(app, `GET /users/${id}`, undefined, token))
    assert.equal(await page.getByRole('link', { name: 'My payments' }).getAttribute('href'), '#/payments')
    await page.getByLabel('Name').fill('W'.repeat(255))
    assert.equal(await page.getByText('of 320 characters').count(), 0)
    await page.getByLabel('Name').fill('W'.repeat(256))
    await page.getByText('256 of 320 characters').waitFor()
    await page.getByLabel('Name').fill('😀'.repeat(161)) // which the service counts as two, each
    await page.getByText('322 of 320 characters').waitFor()
    assert.equal(await described(page, 'Name'), 'Name is 2 characters too long.')
    await view.button('Save the profile').click()
    assert.equal((await stored()).name, name)
    await page.getByLabel('Name').fill('Emmy Noether')
    for (const address of ['ftp://example.com', 'ftp://example.org']) {
      await page.getByLabel('Avatar').fill(address)
      assert.equal(await page.getByText('Avatar must be').count(), 0)
      await view.button('Save the profile').click()
      await page.getByText('Avatar must be an http or https address.').waitFor()
    }
    await page.getByLabel('Avatar').fill('https://example.com/emmy.png')
    await page.getByLabel('E-mail').fill(ada)
    await view.button('Save the profile').click()
    const dialog = page.getByRole('dialog', { name: 'Somebody else was faster' })
    await page.getByText('E-mail is already in use.').or(dialog).waitFor()
    assert.equal(await dialog.count(), 0) // it is another conflict
    await page.getByLabel('E-mail').fill(email)
    const sent = page.waitForRequest(request => request.method() === 'PATCH')
    await view.button('Save the profile').click()
    const changed = { name: 'Emmy Noether', avatar: 'https://example.com/emmy.png' }
    assert.deepEqual((await sent).postDataJSON(), changed) // nothing else is overwritten
    await view.account.getByText('Emmy Noether').first().waitFor()
    assert.deepEqual(await stored(), { id, name: 'Emmy Noether', email, avatar: 'https://example.com/emmy.png' })

    await page.getByLabel('Name').fill('E. Noether')
    await page.getByLabel('Avatar').fill('')
    const again = page.waitForResponse(answer => answer.request().method() === 'PATCH')
    await view.button('Save the profile').click()
    assert.equal((await again).status(), 200) // it is no conflict with the former change
    await view.account.getByText('E. Noether').first().waitFor()
    assert.equal((await stored()).avatar, undefined)

    await page.getByLabel('Age').fill('0')
    bodyOf(await send(app, `PATCH /users/${id}`, { name: 'Amalie Emmy Noether' }, token))
    for (const way of ['Close', 'Save my changes']) {
      assert.equal(await page.getByLabel('Age').inputValue(), '0')
      await view.button('Save the profile').click()
      await dialog.waitFor()
      assert.match(await dialog.locator('.differs').last().innerText(), /^Age\t0\t–$/)
      if (way !== 'Close') await failOne(page, '"age":0')
      await view.button(way).click()
    }
    await dialog.getByRole('button', { name: 'Try again' }).click()
    await view.account.getByText('Amalie Emmy Noether').first().waitFor()
    assert.equal(await page.getByLabel('Name').inputValue(), 'Amalie Emmy Noether')
    assert.equal((await stored()).age, 0)

    await page.getByLabel('Age').fill('53')
    bodyOf(await send(app, `PATCH /users/${id}`, { name: 'Emmy' }, token))
    await view.button('Save the profile').click()
    await view.button('Keep what is stored').click()
    await view.account.getByText('Emmy', { exact: true }).first().waitFor()
    assert.equal(await view.account.locator('.face').innerText(), 'E') // one word, one letter
    assert.equal(await page.getByLabel('Age').inputValue(), '0')
    await page.getByLabel('Age').fill('')
    const last = page.waitForResponse(answer => answer.request().method() === 'PATCH')
    await view.button('Save the profile').click()
    await last
    assert.equal((await stored()).age, undefined)
  })

  it('changes a password for who knows the present one, and goes on in all tabs of this browser; ends the account', async () => {
    const { id, email } = await createUser(app, { password })
    const old = await logIn(app, email, password)
    await using view = await open({ tab: '/account', as: email, ...ownContext, refusals: true })
    const { page } = view
    const other = await view.context.newPage()
    await other.goto(`${app.url}/console`)
    await other.getByRole('button', { name: 'Write a post' }).waitFor()
    await other.getByText('Live', { exact: true }).waitFor()
    const change = async (present: string) => {
      await page.getByLabel('Present password').fill(present)
      await page.getByLabel('New password').fill('another password')
      await view.button('Change the password').click()
    }
    await change('wrong password')
    await page.getByText('Present password is wrong.').waitFor()
    assert.equal(await page.getByLabel('New password').inputValue(), 'another password')
    const watch = "new MutationObserver(() => { window.asked ||= document.querySelector('dialog') !== null })"
    await page.evaluate(`${watch}.observe(document.body, { childList: true, subtree: true })`)
    // The page is told that its session has ended before it can begin the next one.
    const ended = page.waitForResponse(answer => answer.url().endsWith('/tokens') && answer.status() === 401)
    let logins = 0
    await page.route(/tokens$/, async route => {
      if (route.request().postData() !== null && ++logins === 2) await ended
      await route.continue()
    })
    await change(password)
    await page.getByText('Your password is changed').waitFor()
    assert.notEqual(await page.evaluate('window.asked'), true) // to sign in again
    for (const which of ['Present', 'New']) assert.equal(await page.getByLabel(`${which} password`).inputValue(), '')
    assert.equal((await send(app, `GET /users/${id}`, undefined, old)).status, 401)
    for (const each of [page, other]) {
      await each.reload()
      await each.getByRole('banner').getByRole('group').waitFor()
      assert.equal(await each.getByRole('dialog').count(), 0)
    }
    await view.button('Delete my account').click()
    await page.getByRole('dialog').getByLabel('Present password').fill(password)
    await view.button('Delete it for ever').click()
    await page.getByText('Present password is wrong.').waitFor()
    await view.button('Keep it').click()
    await view.button('Delete my account').and(page.locator(':focus')).press('Enter')
    assert.equal(await page.getByText('Present password is wrong.').count(), 0)
    await page.getByRole('dialog').getByLabel('Present password').fill('another password')
    await view.button('Delete it for ever').click()
    await page.getByText('Your account is deleted').waitFor()
    assert.equal(new URL(page.url()).hash, '#/feed')
    await view.button('Sign in').waitFor()
    assert.equal(await page.getByRole('dialog').count(), 0)
    assert.equal((await send(app, `GET /users/${id}`, undefined, await logIn(app, ada, password))).status, 404)
  })

  it('does nothing more with an answer that comes after its user has signed out', async () => {
    const token = await logIn(app, ada, password)
    const { id } = await createUser(app)
    const order = await createOrder(app, id, [{ name: 'Brass gear', quantity: 1, price: 100 }], token)
    await using view = await open(ownContext)
    const { page } = view
    const inDialog = (name: string) => page.getByRole('dialog').getByRole('button', { name })
    const places: Record<string, () => Promise<void>> = {
      '#/orders': async () => {
        await view.button('New order').click()
        await page.getByLabel('Item', { exact: true }).fill('Tape')
        await page.getByLabel('Price each').fill('1')
        await view.button('Place the order').click()
      },
      [`#/orders/${order.id}`]: () => view.button('Pay 100').click(),
      [`#/users/${id}?edit`]: async () => {
        await view.button('Edit').click()
        await page.getByLabel('Age').fill('41')
        await view.button('Save').click()
      },
      [`#/users/${id}?role`]: async () => {
        await view.button('Make an admin').click()
        await inDialog('Make an admin').click()
      },
      [`#/users/${id}?delete`]: async () => {
        await view.button('Delete').click()
        await inDialog('Delete the user').click()
      },
    }
    /** Another tab changes the session. */
    const elsewhere = (change: string) =>
      page.evaluate(`localStorage.${change}('duet-token', '${token}')
        dispatchEvent(new StorageEvent('storage', { storageArea: localStorage, key: 'duet-token' }))`)
    for (const [place, act] of Object.entries(places)) {
      await elsewhere('setItem')
      await view.account.waitFor()
      await page.goto(`${app.url}/console${place}`)
      const [asked, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      const isWriting = (request: Request) => request.method() !== 'GET' && !request.url().endsWith('/graphql')
      await page.route(/\/(users|orders)\//, async route => {
        if (!isWriting(route.request())) return route.fallback()
        asked.resolve()
        await held.promise
        await route.continue()
      })
      await act()
      await asked.promise
      await elsewhere('removeItem')
      await view.button('Sign in').waitFor()
      const answered = page.waitForResponse(response => isWriting(response.request()))
      held.resolve()
      assert.ok((await answered).ok())
      await settle(page)
      assert.deepEqual([new URL(page.url()).hash, await page.locator('.toast').count()], [place, 0])
      await page.unroute(/\/(users|orders)\//)
    }
  })

  it('ends all sessions of a user', async () => {
    await using view = await open({ tab: '/account', refusals: true })
    await view.button('Sign in to go on').click()
    await view.page.getByRole('tab', { name: 'Create an account' }).click()
    const { name, email } = somebody()
    for (const [label, text] of Object.entries({ Name: name, 'E-mail': email, Password: password })) {
      await view.page.getByLabel(label).fill(text)
    }
    await view.button('Create the account').click()
    await view.account.waitFor() // the new user is signed in at once
    const elsewhere = await logIn(app, email, password)
    await view.page.route(/\/users\/\d+$/, route => route.fulfill({ status: 503 }))
    await view.page.getByLabel('Present password').fill(password)
    await view.page.getByLabel('New password').fill('another password')
    await view.button('Change the password').click()
    await view.page.getByRole('alert').getByText('The service could not do this').waitFor()
    await view.account.locator('summary').click()
    for (const place of [view.account, view.page.getByRole('region', { name: 'Sessions' })]) {
      await view.page.route(/tokens$/, route => route.abort(), { times: 1 })
      await place.getByRole('button', { name: 'Sign out on all devices' }).click()
      await place.getByRole('alert').getByText('The service could not be reached').waitFor()
    }
    await view.button('Try again').last().click()
    await view.page.getByRole('heading', { name: 'Sign in', level: 1 }).waitFor()
    assert.equal(await view.page.getByLabel('E-mail').inputValue(), '') // the next user types another one
    await waitUntil(async () => (await send(app, 'GET /users/me', undefined, elsewhere)).status === 401)
    assert.equal(await view.page.getByRole('dialog').count(), 0)
  })
})
