import { element } from './dom.ts'
import { type Found, most, type Page, search } from './match.ts'

/** Adds the search: a button before the given element, and a dialog that `/` and Ctrl-K open, too. */
export function addSearch(place: HTMLElement, root: URL): void {
  const input = element('input', { type: 'search', placeholder: 'Search the documentation', autofocus: true })
  input.ariaLabel = 'Search the documentation'
  const list = element('ul', {})
  const status = element('p', { role: 'status' })
  const dialog = element('dialog', { className: 'search', ariaLabel: 'Search' }, input, status, list)
  document.body.append(dialog)
  let pages: readonly Page[] = []

  const show = () => {
    if (pages.length === 0) return // they are still on their way, or did not come
    const found = search(pages, input.value)
    list.replaceChildren(...found.map(each => line(each, root)))
    const count = found.length === most ? `The best ${most} are shown.` : `${found.length || 'Nothing'} found.`
    status.textContent = input.value.trim() === '' ? hint : count
  }
  const open = async () => {
    if (dialog.open) return
    dialog.showModal()
    input.select()
    if (pages.length > 0) return
    status.textContent = 'Loading'
    try {
      pages = await (await fetch(new URL('docs/search.json', root))).json()
      show()
    } catch {
      status.textContent = 'The service cannot be reached.'
    }
  }

  input.addEventListener('input', show)
  dialog.addEventListener('keydown', event => {
    const links = [...list.querySelectorAll('a')]
    const at = links.indexOf(document.activeElement as HTMLAnchorElement)
    if (event.key === 'Enter' && at < 0) links[0]?.click()
    else if (event.key === 'Escape')
      dialog.close() // by itself it would first empty the field
    else if (event.key === 'ArrowDown') (links[at + 1] ?? links[at])?.focus()
    else if (event.key === 'ArrowUp') (links[at - 1] ?? input).focus()
    else return
    event.preventDefault()
  })
  dialog.addEventListener('click', ({ target }) => {
    const isLink = target instanceof Element && target.closest('a') !== null
    if (isLink || target === dialog) dialog.close() // the dialog itself is what is around its content
  })
  addEventListener('keydown', event => {
    const isWriting = event.target instanceof Element && event.target.matches('input, textarea, select')
    const isSlash = event.key === '/' && !isWriting && !event.ctrlKey && !event.metaKey && !event.altKey
    const isControlK = event.key === 'k' && (event.ctrlKey || event.metaKey)
    if (!isSlash && !isControlK) return
    event.preventDefault()
    open()
  })
  const button = element('button', { type: 'button', className: 'find', title: 'Search (/ or Ctrl-K)' }, 'Search')
  button.addEventListener('click', open)
  place.before(button)
}

const hint = 'All words count, also their beginnings. ↑ ↓ select, Enter opens, Esc closes.'

function line({ page, heading, address, line: pieces }: Found, root: URL): HTMLLIElement {
  const shown = pieces.map((piece, n) => (n % 2 === 0 ? piece : element('mark', {}, piece)))
  const title = element('strong', {}, heading === page ? page : `${page} › ${heading}`)
  return element('li', {}, element('a', { href: new URL(address, root).href }, title, element('span', {}, ...shown)))
}
