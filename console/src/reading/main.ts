// What helps to read the pages of the documentation: the address of this service in the examples, buttons to copy them, the
// menu on a phone, and the search.
import { copyable } from './copy.ts'
import { addSearch } from './search.ts'
import './reading.css'

const slot = document.querySelector<HTMLElement>('#account')
/** The root of the service, as this browser sees it: a gateway may publish it below a prefix. */
const root = new URL(`./${slot?.dataset.root ?? ''}`, location.href)

const address = root.href.replace(/\/$/, '')
for (const part of document.querySelectorAll('.here')) {
  const written = part.textContent ?? ''
  part.textContent = written.startsWith('ws') ? address.replace(/^http/, 'ws') : address
  const link = part.closest('a')
  if (link !== null) link.href = link.href.replace(written, address)
}

for (const code of document.querySelectorAll('pre')) copyable(code)

const menu = document.querySelector<HTMLElement>('#menu')
menu?.addEventListener('toggle', () => menu.querySelector('[aria-current]')?.scrollIntoView({ block: 'center' }))
menu?.addEventListener('click', ({ target }) => {
  if (target instanceof Element && target.closest('a') !== null) menu.hidePopover()
})

if (slot !== null) addSearch(slot, root)
