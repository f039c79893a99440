import { signal } from '@preact/signals'

export const tabs = [
  { name: 'feed', title: 'Feed' },
  { name: 'users', title: 'Users' },
  { name: 'orders', title: 'Orders' },
  { name: 'payments', title: 'Payments' },
  { name: 'requests', title: 'Requests' },
  { name: 'health', title: 'Health' },
] as const

export type TabName = (typeof tabs)[number]['name']

/** The current tab, from the address: `#users`. Another address, such as that of the content, changes nothing. */
export const tab = signal<TabName>(tabInAddress() ?? 'feed')

addEventListener('hashchange', () => {
  tab.value = tabInAddress() ?? tab.peek()
})

function tabInAddress(): TabName | undefined {
  return tabs.find(({ name }) => name === location.hash.slice(1))?.name
}
