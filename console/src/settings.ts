/** Settings that the service puts into the page. */
interface Settings {
  readonly demoLogin?: { readonly email: string; readonly password: string }
  readonly metrics: 'open' | 'token' | 'off'
}

export const root = document.querySelector<HTMLElement>('#app') ?? document.body

export const settings: Settings = { metrics: 'off', ...JSON.parse(root.dataset.settings || '{}') }

/** The address of the service. The page may be published below a prefix. */
export const serviceUrl = new URL('.', location.href).href.replace(/\/$/, '')
