import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type { Route } from 'playwright-core'
import { browserMissing } from '../support/browser.ts'
import { read } from '../support/graphql.ts'
import type { OrderBody, PaymentBody, UserBody } from '../support/rest.ts'
import { bodyOf, createOrder, createUser, logIn, payOrder, send } from '../support/rest.ts'
import { waitUntil } from '../support/wait.ts'
import type { ConsoleOptions, ConsolePage } from './console-page.ts'
import { ada, focus, grace, holdAnswer, holdOne, ownContext, password, settle, startConsole } from './console-page.ts'

describe('the administration in the console', { skip: browserMissing }, () => {
  const currency = { CURRENCY: 'EUR', CURRENCY_DIGITS: '2' }
  const { app, open: openConsole } = startConsole({ ACCESS_POLICY: 'enforced', ...currency })
  let token: string
  before(async () => {
    token = await logIn(app, ada, password)
  })

  const open = (tab: string, options: ConsoleOptions = {}) => openConsole({ tab: `/${tab}`, as: ada, ...options })
  const rows = (view: ConsolePage) => view.page.locator('.listing tbody tr:not(.below)')
  const firstCells = async (view: ConsolePage) =>
    (await rows(view).locator('td:first-child').allInnerTexts()).map(text => text.split('\n').at(-1)?.trim())
  const idOf = async (email: string) =>
    bodyOf<UserBody[]>(await send(app, `GET /users?email=${email}`, undefined, token))[0]?.id ?? 0
  const order = (userId: number, price = 120) =>
    createOrder(app, userId, [{ name: 'Brass gear', quantity: 3, price }], token)

  it('finds users while one types, by name or e-mail, and shows the answer to the newest text, whichever comes last', async () => {
    const named = (name: string) => createUser(app, { name, email: `${name}@mo.example`, age: 0 })
    await Promise.all(['Mona', 'Monika', 'Monty'].map(named))
    await using view = await open('users')
    const { page } = view
    const search = page.getByLabel('Find by name or e-mail')
    await page.getByRole('link', { name: 'Ada Lovelace' }).waitFor()
    const release = await holdOne(page, /q=mon(&|$)/)
    const asked = page.waitForRequest(/q=mon(&|$)/)
    await search.pressSequentially('mon')
    const late = (await asked).response()
    await search.pressSequentially('I')
    await waitUntil(async () => (await rows(view).count()) === 1)
    release()
    await late
    await settle(page)
    assert.deepEqual(await firstCells(view), [`Monika #${await idOf('monika@mo.example')}`])
    await page.locator('[aria-live=polite]').getByText('Found: 1', { exact: true }).waitFor({ state: 'attached' })

    await search.fill('MONTY@mo.ex')
    await page.getByRole('link', { name: 'Monty', exact: true }).waitFor()
    assert.match(await rows(view).innerText(), /Monty@mo\.example\s+0$/)
    await page.reload() // the address has what was searched for
    await page.getByRole('link', { name: 'Monty', exact: true }).waitFor()
    assert.equal(await search.inputValue(), 'MONTY@mo.ex')
    await search.press('ArrowDown')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Monty', level: 1 }).waitFor()
    await page.goBack()
    await page.getByRole('link', { name: 'Monty', exact: true }).waitFor()
    assert.equal(await search.inputValue(), 'MONTY@mo.ex')
    await search.fill('M ')
    await page.getByRole('link', { name: 'Ada Lovelace' }).waitFor()
    assert.equal(await search.inputValue(), 'M ')
    for (const [text, email] of Object.entries({ zz: '', 'zz@mo.example': 'zz@mo.example' })) {
      await search.fill(text)
      await page.getByText(`No name or e-mail begins with “${text}”`).waitFor()
      await view.button('Create a user').click()
      assert.equal(await page.getByRole('dialog').getByLabel('E-mail').inputValue(), email)
      await page.keyboard.press('Escape')
    }
    await view.show('Users')
    await page.getByRole('link', { name: 'Ada Lovelace' }).waitFor()
    assert.equal(await search.inputValue(), '')
    await page.clock.install()
    await page.clock.pauseAt(Date.now() + 10_000)
    await search.fill('mon')
    await page.clock.runFor(200) // now it searches
    await search.press('i')
    await page.clock.runFor(100)
    const typed = await search.inputValue()
    await view.show('Orders')
    await page.clock.runFor(1000)
    await page.clock.resume() // other pages have the same clock
    assert.deepEqual([typed, new URL(page.url()).hash], ['moni', '#/orders'])
  })

  it('lists users and orders page by page, keeps the page while one looks at a user, and leaves it for another filter', async () => {
    await Promise.all(Array.from({ length: 12 }, () => createUser(app)))
    await using view = await open('users', { refusals: true })
    const { page } = view
    await view.button('Next').click()
    await page.getByText('Page 2').waitFor()
    const second = await firstCells(view)
    assert.equal(second.length > 0 && second.length <= 10, true)
    const id = Number(second[0]?.split('#')[1])
    const ordered: number[] = [] // newest first
    for (let count = 0; count < 11; count++) ordered.unshift((await order(id)).id)
    await rows(view).nth(0).getByRole('link').click()
    const section = page.getByRole('region', { name: 'Orders' })
    const turn = async (name: string, to: number) => {
      await section.getByRole('button', { name }).click()
      await section.getByText(`Page ${to}`).waitFor()
      const shown = (await section.locator('td:first-child').allInnerTexts()).map(text => Number(text.split(' ')[1]))
      assert.deepEqual(shown, ordered.slice(5 * to - 5, 5 * to))
    }
    await turn('Next', 2)
    await turn('Next', 3)
    await turn('Previous', 2)
    await send(app, `DELETE /orders/${ordered[10]}`, undefined, token) // the last page becomes empty
    await send(app, `PATCH /users/${id}`, { name: 'Renamed meanwhile' }, token)
    await section.getByRole('button', { name: 'Next' }).click()
    await section.locator('[aria-busy=false] [aria-disabled=true]').getByText('Next').waitFor()
    await turn('Previous', 1)
    await page.goBack()
    await page.getByText('Page 2').waitFor()
    await page.getByText('Renamed meanwhile').waitFor()
    assert.deepEqual((await firstCells(view)).slice(1), second.slice(1))
    const search = page.getByLabel('Find by name or e-mail')
    await search.fill('person')
    assert.equal(await page.locator('[aria-live=polite]').getByText('Found').textContent(), 'Found: 10 and more')
    for (const text of ['renamed', '']) {
      await search.fill(text)
      await waitUntil(async () => (await rows(view).count()) === (text === '' ? 10 : 1))
      assert.equal(await page.getByText('Page 2').count(), 0)
    }
    await page.route(/q=renamed/, route => route.abort(), { times: 1 })
    await search.fill('renamed')
    await page.getByRole('alert').waitFor()
    assert.equal(await page.locator('.outdated').count(), 1)
    await view.button('Next').click()
    await waitUntil(async () => (await rows(view).count()) === 1)
    assert.equal(await page.getByText('Page 2').count(), 0)
    await search.fill('')
    await waitUntil(async () => (await rows(view).count()) === 10)
    await view.button('Next').click()
    await page.getByText('Page 2').waitFor()
    await view.button('Previous').click()
    await page.getByText('Page 1').waitFor()
    const first = await firstCells(view)
    assert.deepEqual([first.length, first.filter(name => second.includes(name))], [10, []])
  })

  it('creates a user, shows the profile, what the user ordered, paid and wrote, and deletes the user after a question', async () => {
    await using view = await open('users', { refusals: true })
    const { page } = view
    await view.button('New user').click()
    const input = { Name: 'Barbara Jane', 'E-mail': 'barbara@example.com', Age: '0', Password: password }
    for (const [label, text] of Object.entries(input)) await page.getByLabel(label, { exact: true }).fill(text)
    await view.button('Create').click()
    await page.getByRole('heading', { name: 'Barbara Jane', level: 1 }).waitFor()
    const id = await idOf('barbara@example.com')
    const paid = await order(id)
    await payOrder(app, paid.id, undefined, token)
    const waiting = await order(id, 5)
    const own = await logIn(app, 'barbara@example.com', password)
    await read(app, 'mutation { createPost(title: "On abstraction", content: "Text.") { id } }', { token: own })

    const owner = (name: string) => rows(view).first().getByRole('link', { name })
    await send(app, `PATCH /users/${id}`, { name: 'Barbara Liskov' }, token)
    await view.show('Orders')
    await owner('Barbara Jane').click() // the page does not know better yet
    await page.getByRole('heading', { name: 'Barbara Liskov', level: 1 }).waitFor()
    await view.show('Orders')
    assert.match(await rows(view).first().innerText(), /Barbara Liskov/)
    await owner('Barbara Liskov').click()
    const section = (name: string) => page.getByRole('region', { name })
    await section('Posts').getByRole('link', { name: 'On abstraction' }).waitFor()
    await section('Payments for orders').getByRole('link').waitFor()
    assert.match(await section('Profile').innerText(), /barbara@example\.com[\s\S]*Age\s+0\s+Joined\s+just now/)
    const orders = await section('Orders').locator('tbody tr').allInnerTexts()
    assert.match(orders.join('|'), new RegExp(`^Order ${waiting.id}\\D.*€0\\.15\\|Order ${paid.id}\\D.*€3\\.60$`, 's'))
    const payments = await section('Payments for orders').locator('tbody').innerText()
    assert.match(payments, new RegExp(`^Order ${paid.id}\\D.*€3\\.60$`, 's'))
    assert.equal(await page.title(), 'Barbara Liskov · Duet console')

    // The form has what is stored now, so there is no conflict.
    await send(app, `PATCH /users/${id}`, { name: 'Barbara Huberman' }, token)
    const edit = async (age: string, next: string, secret = '') => {
      await view.button('Edit').click()
      assert.equal(await page.getByLabel('Age', { exact: true }).inputValue(), age)
      assert.equal(await page.getByLabel('Name', { exact: true }).inputValue(), 'Barbara Huberman')
      await page.getByLabel('Age', { exact: true }).fill(next)
      await page.getByLabel('Password').fill(secret)
      await view.button('Save').click()
      await page.getByRole('dialog').waitFor({ state: 'hidden' })
      return bodyOf<UserBody>(await send(app, `GET /users/${id}`, undefined, token)).age
    }
    assert.equal(await edit('0', '86', 'another password'), 86)
    await section('Profile').getByText('86', { exact: true }).waitFor()
    assert.equal(await page.title(), 'Barbara Huberman · Duet console')
    await view.show('Orders')
    await owner('Barbara Huberman').waitFor()
    await page.goBack()
    assert.equal(await edit('86', '0'), 0)
    assert.equal(await edit('0', ''), undefined)
    assert.doesNotMatch(await section('Profile').innerText(), /Age/)
    await logIn(app, 'barbara@example.com', 'another password')
    for (const name of ['Delete', 'Keep it', 'Delete', 'Delete the user']) await view.button(name).click()
    await page.getByRole('heading', { name: 'Users', level: 1 }).waitFor()
    await page.goBack() // and not to the deleted user
    assert.equal(new URL(page.url()).hash, '#/orders')
    await page.goto(`${app.url}/console#/users/${id}`)
    await page.getByText('There is no such user').waitFor()
    await page.goto(`${app.url}/console#/orders/${paid.id}`)
    await page.getByRole('article').getByText('Deleted user').waitFor()
  })

  it('shows roles to admins, changes them after a question, and says at its place that the last admin stays one', async () => {
    const { id, email } = await createUser(app, { name: 'Radia Perlman', password })
    await using view = await open(`users/${id}`, { refusals: true })
    const { page } = view
    const role = page.getByRole('region', { name: 'Profile' }).locator('.role')
    const dialog = page.getByRole('dialog')
    const ask = async (what: string, question: RegExp) => {
      await view.button(what).click()
      assert.match(await dialog.innerText(), question)
      await dialog.getByRole('button', { name: what }).click()
    }
    const roleOf = async (user: number) =>
      bodyOf<{ role: string }>(await send(app, `GET /users/${user}/role`, undefined, token)).role
    for (const [next, what] of Object.entries({ admin: 'Make an admin', member: 'Make a member' })) {
      await ask(what, /Radia Perlman is signed out everywhere/)
      await role.getByText(next, { exact: true }).waitFor()
      assert.equal(await roleOf(id), next)
    }

    await page.goto(`${app.url}/console#/users/1`)
    await ask('Make a member', /You are signed out everywhere/)
    await dialog.getByText('The last admin stays an admin.').waitFor()
    assert.equal(await roleOf(1), 'admin')
    assert.match(await role.innerText(), /^admin/)

    await using other = await open(`users/${id}`, { as: email, ...ownContext })
    await other.page.getByText('This is for admins').waitFor()
  })

  it('shows all orders newest first with owner, time and items, also of one status or one user, found by typing', async () => {
    const graceId = await idOf(grace)
    const [first, second] = [await order(1, 100), await order(graceId, 1234)]
    await using view = await open('orders')
    const { page } = view
    await page.getByRole('link', { name: `Order ${second.id}` }).waitFor()
    assert.deepEqual((await firstCells(view)).slice(0, 2), [`Order ${second.id}`, `Order ${first.id}`])
    await page.getByRole('link', { name: 'Grace Hopper' }).first().waitFor()
    const top = await rows(view).first().innerText()
    assert.match(top, /^Order \d+\s+Grace Hopper\s+just now\s+Waiting for payment\s+€37\.02/)
    await view.button(`Items of order ${second.id}`).click()
    const items = page.getByRole('table', { name: 'Items' })
    assert.match(await items.innerText(), /Brass gear\s+3\s+€12\.34\s+€37\.02/)
    await view.button(`Items of order ${first.id}`).click()
    await items.getByText('€3.00').first().waitFor()
    assert.equal(await items.count(), 1)
    await view.button(`Items of order ${first.id}`).click()
    await items.waitFor({ state: 'detached' })

    await page.getByLabel('Status').selectOption('Paid and shipped')
    await waitUntil(async () => /shipped/.test(await rows(view).first().innerText()))
    assert.equal((await rows(view).allInnerTexts()).filter(text => !text.includes('Paid and shipped')).length, 0)
    const whose = page.getByRole('combobox', { name: 'Orders of' })
    await whose.fill('gr')
    await page.getByRole('option', { name: /Grace Hopper/ }).waitFor()
    await whose.press('Enter')
    const owners = async () => [...new Set(await rows(view).locator('td:nth-child(2)').allInnerTexts())].join()
    await waitUntil(async () => (await owners()) === 'Grace Hopper')
    await page.reload() // the address has both filters
    await waitUntil(async () => (await owners()) === 'Grace Hopper')
    assert.equal(await page.getByLabel('Status').inputValue(), 'shipped')
    await waitUntil(async () => (await whose.inputValue()) === 'Grace Hopper')
    await whose.fill('')
    await waitUntil(async () => (await owners()) !== 'Grace Hopper')
    await page.goto(`${app.url}/console#/orders?status=lost&user=${graceId}`) // there is no such status
    await waitUntil(async () => (await owners()) === 'Grace Hopper')
    await view.button('New order').click()
    const whom = page.getByRole('combobox', { name: 'For whom' })
    assert.equal(await whom.inputValue(), 'Grace Hopper')
    await whom.press('Escape') // nothing is written, so there is no question
    await page.getByRole('dialog').waitFor({ state: 'detached', timeout: 20_000 })
    await view.button('New order').click()
    await whom.fill('ada lo')
    await page.getByRole('option', { name: /Ada Lovelace/ }).click()
    await page.getByLabel('Item', { exact: true }).fill('Paper tape')
    await page.getByLabel('Price each (EUR)').fill('1')
    await view.button('Place the order').click()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    assert.equal(new URL(page.url()).hash, '#/orders', 'the filter would hide it')
  })

  it('places an order for a user found by typing, in the money of the service, and shows it on top at once', async () => {
    await using view = await open('orders?status=shipped', { refusals: true })
    const { page } = view
    await rows(view).first().waitFor()
    for (const name of ['Zoe Alpha', 'Zoe Beta', 'Zoe Gamma']) await createUser(app, { name })
    await view.button('New order').click()
    const dialog = page.getByRole('dialog')
    const whom = dialog.getByRole('combobox', { name: 'For whom' })
    assert.equal(await whom.inputValue(), 'Ada Lovelace')
    const chosen = dialog.getByRole('option', { selected: true })
    await whom.fill('zo')
    await chosen.getByText('Zoe Alpha').waitFor()
    await whom.press('ArrowDown')
    await chosen.getByText('Zoe Beta').waitFor()
    await whom.fill('zoe')
    await chosen.getByText('Zoe Alpha').waitFor() // the first one again
    await whom.press('ArrowUp')
    await chosen.getByText('Zoe Gamma').waitFor()
    for (let count = 0; count < 2; count++) await whom.press('ArrowDown')
    await whom.press('Enter')
    assert.equal(await whom.inputValue(), 'Zoe Beta')
    await whom.fill('nobody')
    await dialog.getByText('Nobody found').waitFor()
    await dialog.getByLabel('Quantity').focus() // the user who is chosen stays
    assert.equal(await whom.inputValue(), 'Zoe Beta')
    await whom.fill('zo')
    await chosen.waitFor()
    await whom.press('Escape') // closes only the list
    assert.equal(await whom.inputValue(), 'Zoe Beta')
    await whom.fill('alan')
    await page.getByRole('option', { name: /Alan Turing/ }).click()
    await dialog.getByLabel('Item', { exact: true }).fill('Paper tape')
    await dialog.getByLabel('Quantity').fill('2')
    const price = dialog.getByLabel('Price each (EUR)')
    for (const wrong of ['1.234', '12,345', '-3', '10000000.01', 'ten']) {
      await price.fill(wrong)
      assert.equal(await dialog.locator('input:invalid').count(), 1, wrong)
    }
    assert.equal(await dialog.locator('.amount').innerText(), '–')
    assert.ok(await view.button('Remove Paper tape').isDisabled())
    await price.fill('10000000')
    assert.equal(await dialog.locator('input:invalid').count(), 0)
    await price.fill('36.07')
    await dialog.getByText('€72.14').waitFor()
    await dialog.getByLabel('Item', { exact: true }).fill(' ')
    const refused = page.waitForResponse(/\/users\/\d+\/orders$/)
    await view.button('Place the order').click()
    await refused
    await settle(page)
    assert.match(await dialog.innerText(), /Items\[0\]\.name must/) // no field has this name
    await dialog.getByLabel('Item', { exact: true }).fill('Paper tape')
    await view.button('Another item').click()
    await dialog.getByLabel('Item', { exact: true }).last().fill('A gift')
    await dialog.getByLabel('Price each (EUR)').last().fill('0')
    assert.equal(await dialog.locator('input:invalid').count(), 0)
    await page.route(/\/users\/\d+\/orders$/, route => route.fulfill({ status: 503 }), { times: 1 })
    await view.button('Place the order').click()
    await dialog.getByRole('button', { name: 'Try again' }).click()
    const top = rows(view).first()
    await top.getByText('€72.14').waitFor()
    assert.match(await top.innerText(), /Alan Turing[\s\S]*Waiting for payment/)
    assert.equal(new URL(page.url()).hash, '#/orders') // the filter would hide it
    const [stored] = bodyOf<OrderBody[]>(await send(app, 'GET /orders?sort=-id&limit=1', undefined, token))
    assert.deepEqual([stored?.amount, stored?.status], [7214, 'pending_payment'])

    // While the answer to the next reading is under way, the next order is on top already.
    await view.button('New order').click()
    await dialog.getByLabel('Item', { exact: true }).fill('Another tape')
    await price.fill('1')
    const release = await holdOne(page, /\/orders\?/)
    await view.button('Place the order').click()
    await rows(view).first().getByText('€1.00').waitFor()
    assert.equal(await rows(view).count(), 10)
    release()
    await view.button('New order').click()
    await dialog.getByLabel('Item', { exact: true }).fill('Unfinished')
    await page.keyboard.press('Escape')
    await view.button('Go on writing').click()
    const items = dialog.getByLabel('Item', { exact: true })
    assert.equal(await items.inputValue(), 'Unfinished')
    await view.button('Another item').click()
    await view.button('Remove Unfinished').click()
    await view.button('Another item').click()
    await items.last().fill('The other one')
    assert.equal(await items.first().inputValue(), '')
    const another = "document.querySelector('dialog fieldset + .actions button')"
    await page.evaluate(`(async () => { for (let count = 0; count < 120; count++) await ${another}.click() })()`)
    assert.equal(await items.count(), 100) // the service takes no more

    const asked: string[] = []
    page.on('request', request => asked.push(new URL(request.url()).searchParams.get('q') ?? ''))
    await page.clock.install()
    await page.clock.pauseAt(Date.now() + 10_000)
    for (const [text, pause] of [['a', 1000] as const, ['ala', 100] as const, ['al', 1000] as const]) {
      await whom.fill(text)
      await page.clock.runFor(pause)
    }
    await page.clock.resume() // other pages have the same clock
    await page.getByRole('option', { name: /Alan Turing/ }).waitFor()
    assert.equal(asked.join(''), 'al') // two letters are the fewest that the service searches for
    await whom.fill('gr')
    await whom.press('Enter') // before the answer: it must not choose Alan
    assert.equal(await whom.inputValue(), 'gr')
  })

  it('pays and cancels an order at its own address', async () => {
    const [one, other] = [await order(1), await order(1)]
    await using view = await open(`orders/${one.id}`, { refusals: true })
    const { page } = view
    await view.button('Pay €3.60').waitFor()
    await page.getByRole('article').getByRole('link', { name: 'Ada Lovelace' }).waitFor()
    const itself = new RegExp(`/orders/${one.id}$`)
    const late = await holdAnswer(page, itself)
    await focus(page)
    await late.answered
    await view.button('Pay €3.60').click()
    await page.getByText('Difference Express').waitFor({ timeout: 20_000 })
    await late.send() // it was read before the payment
    await page.getByRole('article').getByText('Paid and shipped', { exact: true }).first().waitFor()
    assert.equal(await view.button(/^(Pay|Cancel)/).count(), 0)
    await page.goto(`${app.url}/console#/orders/${other.id}`)
    await view.button('Cancel the order').waitFor()
    const asked: string[] = []
    page.on('request', request => asked.push(request.url()))
    await focus(page)
    await view.button('Cancel the order').click()
    await view.button('Keep it').click()
    await view.button('Cancel the order').click()
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel the order' }).click()
    await page.getByRole('article').getByText('Cancelled', { exact: true }).waitFor()
    assert.equal(await view.button(/^(Pay|Cancel)/).count(), 0)
    await page.getByRole('cell', { name: 'Brass gear' }).waitFor()
    assert.equal(await page.getByRole('alert').count(), 0) // it was nobody else
    assert.equal(asked.filter(url => itself.test(url)).length, 0) // it reads only the order that is shown
    await page.reload()
    await page.getByText('There is no such order').waitFor()
    const again = page.waitForResponse(new RegExp(`/orders/${other.id}$`))
    await focus(page)
    await again
    await settle(page)
    assert.equal(await page.getByRole('alert').count(), 0) // it is still absent
  })

  it('says what became of an order that another window cancelled or paid, and takes its buttons away', async () => {
    await using view = await open('orders', { refusals: true })
    await using other = await open('orders', { refusals: true })
    const stale = async (last: 'Pay €3.60' | 'Cancel the order', meanwhile: (id: number) => Promise<unknown>) => {
      const { id } = await order(1)
      for (const each of [view, other]) await each.page.goto(`${app.url}/console#/orders/${id}`)
      await view.button(last).waitFor()
      await other.button('Pay €3.60').waitFor()
      await meanwhile(id)
      await view.button(last).click()
      if (last === 'Cancel the order') await view.page.getByRole('dialog').getByRole('button', { name: last }).click()
      const notice = view.page.getByRole('article').getByRole('alert')
      await notice.waitFor()
      assert.equal(await view.button(/^(Pay|Cancel)/).count(), 0)
      assert.equal(await view.page.locator('.toast').count(), 0) // it was somebody else
      return notice.innerText()
    }
    const cancelElsewhere = async () => {
      await other.button('Cancel the order').click()
      await other.page.getByRole('dialog').getByRole('button', { name: 'Cancel the order' }).click()
      await other.page.getByText('Cancelled', { exact: true }).waitFor()
    }
    const payElsewhere = async () => {
      await other.button('Pay €3.60').click()
      await other.page.getByText('Difference Express').waitFor()
    }
    assert.equal(await stale('Pay €3.60', cancelElsewhere), 'This order was cancelled meanwhile. Nothing is paid.')
    const tooLate = await stale('Cancel the order', payElsewhere)
    assert.equal(tooLate, 'This order was paid and shipped meanwhile. It can no longer be cancelled.')
    await view.page.getByText('Difference Express').waitFor() // and it shows the present state

    const gone = await order(1)
    const { id } = await order(1)
    await view.page.goto(`${app.url}/console#/orders`)
    await view.page.reload()
    await view.button(`Items of order ${gone.id}`).waitFor()
    await send(app, `DELETE /orders/${gone.id}`, undefined, token)
    await view.button(`Items of order ${gone.id}`).click()
    await view.page.getByText('This order was cancelled meanwhile.', { exact: true }).waitFor()
    assert.match(await rows(view).nth(1).innerText(), new RegExp(`Order ${gone.id}[\\s\\S]*Cancelled`))
    assert.equal(await view.button(/^(Pay|Cancel)/).count(), 0)
    await view.button(`Items of order ${id}`).click()
    await view.button('Pay €3.60').waitFor()
    await other.page.goto(`${app.url}/console#/orders/${id}`)
    await other.page.getByText('Total').waitFor()
    await send(app, `DELETE /orders/${id}`, undefined, token)
    await focus(other.page) // its user comes back to it
    await other.page.getByRole('article').getByText('Cancelled', { exact: true }).waitFor()
    assert.equal(await other.button(/^(Pay|Cancel)/).count(), 0)
    await view.button('Pay €3.60').click()
    await view.page.getByText('This order was cancelled meanwhile. Nothing is paid.').waitFor()
    assert.match(await rows(view).first().innerText(), new RegExp(`Order ${id}[\\s\\S]*Cancelled`))
    assert.equal(await view.button('Pay €3.60').count(), 0)

    const { id: lost } = await order(1)
    const loseAnswer = async (route: Route) => {
      await route.fetch()
      await route.fulfill({ status: 503, headers: { 'retry-after': '60' } })
    }
    await other.page.goto(`${app.url}/console#/orders/${lost}`)
    await other.page.route(/\/payment$/, loseAnswer, { times: 1 })
    await other.button('Pay €3.60').click()
    await other.button('Try again').click()
    await other.page.getByText('Difference Express').waitFor()

    const { id: paid } = await order(1)
    await other.page.goto(`${app.url}/console#/orders/${paid}`)
    await other.page.route(/\/payment$/, route => route.fulfill({ status: 409 }), { times: 1 })
    await other.button('Pay €3.60').click()
    const unpaid = other.page.getByText('Nothing is paid yet.')
    await unpaid.waitFor()
    await payElsewhere()
    assert.equal(await unpaid.count(), 0) // it is paid now
  })

  it('lists payments newest first, page by page, makes one, and shows that sending it again pays nothing twice', async () => {
    for (let count = 0; count < 9; count++) await payOrder(app, (await order(1)).id, undefined, token)
    await using view = await open('payments')
    const { page } = view
    await rows(view).first().getByRole('link').waitFor()
    await page.getByLabel('Amount (EUR)').fill('12.5')
    await view.button('Pay').click()
    await page.getByText(/^Payment \d+ of €12\.50 is made$/).waitFor()
    const ids = async () => (await firstCells(view)).map(text => Number(text?.split(' ')[1]))
    const [paid = 0, ...others] = await ids()
    assert.equal(others.join(), others.toSorted((one, next) => next - one).join())
    assert.equal(bodyOf<PaymentBody>(await send(app, `GET /payments/${paid}`, undefined, token)).amount, 1250)
    await view.button('Send it again').click()
    await page.getByText(`This was payment ${paid} of €12.50 again: nothing was paid twice`).waitFor()
    assert.deepEqual(await ids(), [paid, ...others])
    await view.button('Next').click()
    await page.getByText('Page 2').waitFor()
    assert.ok(Math.max(...(await ids())) < Math.min(paid, ...others))
    await page.getByLabel('Amount (EUR)').fill('1')
    const release = await holdOne(page, /\/payments\?/)
    await view.button('Pay').click()
    await page.getByText(/^Payment \d+ of €1\.00 is made$/).waitFor()
    assert.deepEqual([await page.getByText('Page 1').count(), await ids()], [1, [paid + 1]])
    release()
    await rows(view).nth(9).waitFor({ timeout: 20_000 }) // the others follow
  })

  it('shows members their own orders and payments, and asks for nothing that they may not see', async () => {
    await order(1)
    await using view = await open('orders?user=1', { as: grace, refusals: true })
    const { page } = view
    const refused: string[] = []
    page.on('response', response => response.status() >= 400 && refused.push(response.url()))
    await rows(view).first().waitFor()
    const graceId = await idOf(grace)
    const own = bodyOf<OrderBody[]>(await send(app, `GET /users/${graceId}/orders?sort=-id&limit=10`, undefined, token))
    assert.equal((await firstCells(view)).join(), own.map(({ id }) => `Order ${id}`).join())
    assert.equal(await page.getByRole('combobox', { name: 'Orders of' }).count(), 0)
    await view.button('New order').click()
    await page.getByLabel('Item', { exact: true }).fill('Nanoseconds of wire')
    await page.getByLabel('Price each (EUR)').fill('0.30')
    await view.button('Place the order').click()
    await rows(view).first().getByText('€0.30').waitFor()
    await rows(view).first().getByRole('link').click()
    await view.button('Pay €0.30').click()
    await page.getByText('Difference Express').waitFor()
    assert.equal(await page.getByRole('article').getByRole('link').count(), 0) // to their page among all users
    await view.show('Payments')
    await rows(view).first().getByText('€0.30').waitFor()
    assert.deepEqual(refused, [])
    await page.goto(`${app.url}/console#/orders/1`)
    await page.getByText('There is no such order').waitFor()
    assert.deepEqual(await page.locator('h1').allInnerTexts(), ['Order 1'])
  })

  it('shows nothing of the former user to who signs in in another tab: no form, order, receipt or payment', async t => {
    const { id } = await createUser(app, { email: 'next@example.com', password })
    t.after(() => send(app, `DELETE /users/${id}`, undefined, token)) // other tests have one admin
    await send(app, `PUT /users/${id}/role`, { role: 'admin' }, token)
    for (const [tab, button, shown, next] of [
      ['users', 'New user', 'dialog', 'next@example.com'],
      ['orders', 'New order', 'dialog', grace],
      [`orders/${(await order(1)).id}`, 'Cancel the order', 'article', grace],
      ['payments', 'Pay', '.receipt', grace],
    ] as const) {
      await using view = await open(tab, { refusals: true })
      const { page } = view
      if (tab === 'payments') await page.getByLabel('Amount (EUR)').fill('9')
      await view.button(button).click()
      await page.locator(shown).waitFor()
      await page.evaluate(`localStorage.setItem('duet-token', '${await logIn(app, next, password)}')
dispatchEvent(new StorageEvent('storage', { key: 'duet-token', storageArea: localStorage }))`)
      await view.account.getByText(next).waitFor({ state: 'attached' })
      assert.equal(await page.locator(shown).count(), 0, tab)
      if (tab === 'payments') await rows(view).or(page.getByText('No payments yet')).first().waitFor()
      assert.equal(await page.getByText('€9.00').count(), 0)
    }
  })

  it('shows nothing that the former user has read, and no answer that comes after its reader has left', async () => {
    await order(1)
    await using view = await open('orders', { refusals: true })
    const { page } = view
    await rows(view).first().waitFor()
    const leave = await holdOne(page, /status=shipped/)
    const leaving = page.waitForRequest(/status=shipped/)
    await page.getByLabel('Status').selectOption('Paid and shipped')
    const tooLate = (await leaving).response()
    await view.show('Payments')
    const all = page.waitForResponse(/\/orders\?(?!.*status)/)
    await view.show('Orders')
    await all
    await settle(page)
    const shown = await firstCells(view)
    leave()
    await tooLate
    await settle(page)
    assert.deepEqual(await firstCells(view), shown)

    await view.show('Payments')
    await page.getByLabel('Amount (EUR)').fill('7')
    const held = [await holdOne(page, /\/payments$/), await holdOne(page, /\/users\?/)]
    const paid = page.waitForResponse(/\/payments$/)
    await view.button('Pay').click()
    await view.show('Users')
    await view.account.click()
    await view.button('Sign out').click()
    await view.button('Sign in').waitFor()
    assert.equal(await page.getByRole('row').count(), 0)
    for (const go of held) go()
    await paid
    await view.button('Sign in').click()
    await view.fillIn(grace)
    await page.getByText('This is for admins').waitFor()
    await view.show('Payments')
    await rows(view).or(page.getByText('No payments yet')).first().waitFor()
    assert.equal(await page.getByText('€7.00').or(page.locator('.receipt')).count(), 0)
    const next = await holdOne(page, /\/orders\?/)
    await view.show('Orders')
    assert.equal(await rows(view).count(), 0)
    next()
  })
})
