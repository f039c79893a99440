/** Settings that the service puts into the page. */
interface Settings {
  readonly demoLogin?: { readonly email: string; readonly password: string }
  readonly metrics: 'open' | 'token' | 'off'
  /** Who may see what. */
  readonly policy: 'open' | 'enforced'
  /** Who may create accounts: everybody or admins. */
  readonly signUp: 'open' | 'closed'
  /** How amounts are shown, if the operator has said it: with these decimals. */
  readonly currency?: { readonly code: string; readonly digits: number }
}

export const root = document.querySelector<HTMLElement>('#app') ?? document.body

/** The place of the account in the header. */
export const accountSlot = document.querySelector<HTMLElement>('#account') ?? document.createElement('div')

export const settings: Settings = {
  metrics: 'off',
  policy: 'enforced',
  signUp: 'open',
  ...JSON.parse(root.dataset.settings || '{}'),
}

/** The address of the service. It may be published below a prefix. */
export const serviceUrl = new URL(accountSlot.dataset.root || '.', location.href).href.replace(/\/$/, '')

/** The address of the console. Other pages link to it, too. */
export const consoleUrl = `${serviceUrl}/console`
