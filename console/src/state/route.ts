import { batch, signal } from '@preact/signals'
import { query, queryInAddress } from './query.ts'

/** The first part of each address of the console. `missing` stands for every other one. */
const names = [
  'feed',
  'posts',
  'users',
  'orders',
  'payments',
  'requests',
  'health',
  'account',
  'sign-in',
  'sign-up',
  'forgot',
  'reset',
] as const

export type RouteName = (typeof names)[number] | 'missing'

export interface Route {
  readonly name: RouteName
  /** What follows in the address: the id of a resource, or the secret of a link. */
  readonly id?: string
}

const withId: ReadonlySet<RouteName> = new Set(['posts', 'users', 'orders', 'reset'])

/** Where the user is: `#/users/7` is `{ name: 'users', id: '7' }`. */
export const route = signal<Route>(routeOf(location.hash) ?? { name: 'feed' })

// An address without a slash, such as that of the content, is a place on the page and changes nothing.
addEventListener('hashchange', ({ oldURL }) => {
  // A place in the history that is reached again knows already where the user came from.
  if (history.state === null) history.replaceState({ from: routeOf(new URL(oldURL).hash)?.name }, '')
  // Together, so that no view sees the filter of another one.
  batch(() => {
    query.value = queryInAddress()
    route.value = routeOf(location.hash) ?? route.peek()
  })
})

/** The address of a view, for links. */
export function href(name: RouteName, id?: string | number): string {
  return id === undefined ? `#/${name}` : `#/${name}/${encodeURIComponent(id)}`
}

/** Leads to a view. With `replace`, the way back does not lead to the present one. */
export function go(name: RouteName, id?: string | number, { replace = false } = {}): void {
  if (replace) location.replace(href(name, id))
  else location.assign(href(name, id))
}

/** Remembers how far the user has scrolled, for the way back to this view. */
export function keepPlace(): void {
  history.replaceState({ ...history.state, top: scrollY }, '')
}

/** Goes back to the view if the user came from there. Returns whether that is so. */
export function goBack(name: RouteName): boolean {
  const isBefore = history.state?.from === name
  if (isBefore) history.back()
  return isBefore
}

/** Takes the id out of the address bar and the history, without leaving the view. It may be a secret. */
export function hideId(): void {
  history.replaceState(null, '', href(route.peek().name))
}

/** Earlier versions had addresses without a slash: `#users`. */
export function routeOf(hash: string): Route | undefined {
  const [path = ''] = hash.split('?') // after it stands what a list is filtered by
  if (path === '' || path === '#/') return { name: 'feed' }
  const [, slash, first = '', id, more] = /^#(\/?)([^/]*)(?:\/([^/]*))?(.*)$/s.exec(path) ?? []
  const name = names.find(each => each === first)
  if (slash === '') return name === undefined || id !== undefined ? undefined : { name }
  if (name === undefined || more !== '') return { name: 'missing' }
  if (id === undefined || id === '') return name === 'posts' ? { name: 'feed' } : { name }
  return withId.has(name) ? { name, id: decoded(id) } : { name: 'missing' }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
