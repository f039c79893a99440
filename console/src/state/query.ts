import { signal } from '@preact/signals'

/** What a list is filtered by, from the address: `#/orders?status=shipped`. It survives a reload and the way back. */
export const query = signal(queryInAddress())

/** Changes the address without a new step of its history. An empty text removes a filter. */
export function filterBy(changes: Readonly<Record<string, string>>): void {
  const next = new URLSearchParams(query.peek())
  for (const [name, value] of Object.entries(changes)) {
    if (value === '') next.delete(name)
    else next.set(name, value)
  }
  const [path = ''] = location.hash.split('?')
  const text = next.toString()
  history.replaceState(history.state, '', text === '' ? path : `${path}?${text}`)
  query.value = next
}

export function queryInAddress(): URLSearchParams {
  return new URLSearchParams(location.hash.split('?')[1] ?? '')
}
