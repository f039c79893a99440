import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { browserMissing } from '../support/browser.ts'
import { onlyInFull } from '../support/form.ts'
import { createUser, logIn } from '../support/rest.ts'
import { waitUntil } from '../support/wait.ts'
import { axe, findings } from './axe.ts'
import { ada, type ConsolePage, change, startConsole } from './console-page.ts'

const tabs = ['Feed', 'Users', 'Orders', 'Payments', 'Requests', 'Health']

describe('the console, for all users', { skip: browserMissing }, () => {
  const { app, open } = startConsole()

  /** Opens comments, a payment and the account's menu, so that more of the page is checked. */
  async function fill(view: ConsolePage, tab: string): Promise<void> {
    const { page } = view
    if (tab === 'Payments') await page.getByLabel('Amount').fill('49.90')
    const toOpen = { Feed: /comments?$/, Orders: /^Items of/, Payments: /^Pay$/ }[tab]
    if (toOpen) await view.button(toOpen).first().click()
    const shown = {
      Feed: page.getByLabel('Your comment'),
      Users: page.getByRole('link', { name: 'Ada Lovelace' }),
      Orders: page.getByRole('table', { name: 'Items' }),
      Payments: view.button('Send it again'),
      Health: page.getByText('Ready', { exact: true }),
      Account: page.getByLabel('Name'),
    }[tab]
    await shown?.waitFor()
  }

  /** The pages of one user and one order. */
  async function showPages(view: ConsolePage, look: (what: string) => Promise<void>): Promise<void> {
    await view.show('Users')
    await view.page.getByRole('link', { name: 'Ada Lovelace' }).click()
    await view.page.getByRole('region', { name: 'Posts' }).getByRole('link').first().waitFor()
    await view.button('Make a member').waitFor()
    await look('a user')
    const orders = view.page.getByRole('link', { name: /^Order \d/ })
    await orders.first().click()
    await view.page.getByRole('table', { name: 'Items' }).waitFor()
    await look('an order')
  }

  it('no tab and no dialog has an accessibility problem that axe-core finds, in light and dark mode', async () => {
    await using view = await open({ as: ada, script: axe, colorScheme: 'light', reducedMotion: 'reduce' })
    const { page } = view
    const look = async (what: string) => {
      // All tabs share the colours of the theme, and axe-core looks at them for longer than at all else.
      const withoutColours = onlyInFull && !['Feed', 'Orders'].includes(what)
      const rules = withoutColours ? { 'color-contrast': { enabled: false } } : {}
      assert.deepEqual(await findings(page, 'html', { rules }), [], what)
      if (onlyInFull && what !== 'Feed') return
      await page.emulateMedia({ colorScheme: 'dark' })
      assert.deepEqual(await findings(page, 'html', { runOnly: ['color-contrast'] }), [], `${what}, dark`)
      await page.emulateMedia({ colorScheme: 'light' })
    }
    for (const tab of [...tabs, 'Account']) {
      await view.show(tab)
      await fill(view, tab)
      await look(tab)
    }
    await page.evaluate("location.hash = '#/posts/1'")
    await page.getByLabel('Your comment').waitFor()
    await page.getByRole('button', { name: 'Edit “' }).click()
    await page.getByLabel('Title').fill('Another title')
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor()
    await look('an edited post')
    await view.button('Discard it').click()
    await showPages(view, look)
    await view.show('Users')
    await view.button('New user').click()
    await look('New user')
    const name = page.getByLabel('Name', { exact: true })
    await name.fill('Unfinished')
    const question = page.getByRole('dialog', { name: 'Discard what you wrote?' })
    for (let count = 0; count < 7; count++) {
      await page.keyboard.press('Escape') // the browser lets a page refuse it only now and then
      await question.waitFor({ state: count % 2 === 0 ? 'visible' : 'hidden' })
    }
    await page.evaluate("document.querySelector('dialog').close()") // when the question is open already
    const above = `[...document.querySelectorAll('dialog button')].some(button => {
      const { x, y } = button.getBoundingClientRect()
      return button.textContent === 'Go on writing' && document.elementFromPoint(x + 5, y + 5) === button
    })`
    await waitUntil(() => page.evaluate<boolean>(above))
    await view.button('Go on writing').click()
    assert.equal(await name.inputValue(), 'Unfinished')
    assert.ok(await name.isVisible())
    await name.fill('')
    await page.keyboard.press('Escape')
    await view.show('Orders')
    await view.button('New order').click()
    await page.getByRole('combobox', { name: 'For whom' }).fill('gra')
    await page.getByRole('option', { name: /Grace/ }).waitFor()
    await look('New order')
    for (let count = 0; count < 2; count++) await page.keyboard.press('Escape') // of the found users, then of the dialog
    await view.account.locator('summary').click()
    await view.button('Sign out').click()
    await view.button('Sign in').click()
    await look('Sign in')
    await page.keyboard.press('Escape')
    for (const place of onlyInFull
      ? ['sign-up']
      : ['sign-up', 'forgot', 'reset/secret', 'reset', 'nowhere', 'posts/1', 'posts/0']) {
      await page.evaluate(`location.hash = '#/${place}'`)
      await look(place)
    }
  })

  it('long words do not break the layout, and names with right-to-left characters do not change the text after them', async () => {
    const token = await logIn(app, ada, 'demo-password')
    const post = await change(app, 'write', { title: 'W'.repeat(300), content: 'M'.repeat(5_000) }, token)
    const { id, name } = await createUser(app, { name: 'Eve \u202eflow' })
    await using view = await open({ as: ada })
    const { page } = view
    await page.waitForSelector(`#post-${post}`)
    assert.equal(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), true)
    const widths = "[...document.querySelectorAll('.post')].map(each => each.getBoundingClientRect().width)"
    assert.ok(Math.max(...(await page.evaluate<number[]>(widths))) < 800)
    await view.show('Users')
    const isolated = `[...document.querySelectorAll('bdi')].some(each => each.textContent === ${JSON.stringify(name)}
      && each.closest('td').textContent.includes('#${id}') && getComputedStyle(each).unicodeBidi === 'isolate')`
    await waitUntil(() => page.evaluate<boolean>(isolated)) // the policy of the page forbids waitForFunction with a text
    await change(app, 'remove', { id: post }, token)
  })

  it('fits a phone: no tab is wider than 375 pixels, and every control is large enough to be touched', async () => {
    await using view = await open({ as: ada, viewport: { width: 375, height: 740 }, hasTouch: true, isMobile: true })
    const look = async (tab: string) => {
      assert.equal(await view.page.evaluate('document.documentElement.scrollWidth'), 375, tab)
      const small = await view.page.evaluate(`[...document.querySelectorAll('button, a, input, select, summary')]
        .map(each => [each.getAttribute('aria-label') ?? each.textContent, each.getBoundingClientRect()])
        .filter(([, { width, height }]) => width > 0 && (width < 24 || height < 24) && height > 1)
        .map(([name]) => name)`)
      assert.deepEqual(small, tab === 'Requests' ? [''] : [], tab) // a checkbox, whose label can be touched too
    }
    for (const tab of tabs) {
      await view.show(tab)
      await fill(view, tab)
      await look(tab)
    }
    await showPages(view, look)
    for (const place of ['posts/1', 'account', 'forgot', 'reset/secret', 'nowhere']) {
      await view.page.evaluate(`location.hash = '#/${place}'`)
      await view.page.locator('main h1').filter({ hasNotText: 'Order' }).waitFor()
      assert.equal(await view.page.evaluate('document.documentElement.scrollWidth'), 375, place)
    }
  })
})
