import { type Signal, signal } from '@preact/signals'

const drafts = new Map<string, Signal<string>>()

/** A text that the user is writing. It survives errors, other tabs of the console and a reload of the page. */
export function draft(name: string): Signal<string> {
  const known = drafts.get(name)
  if (known !== undefined) return known
  const key = `duet-draft-${name}`
  const text = signal(sessionStorage.getItem(key) ?? '')
  text.subscribe(value => {
    if (value === '') sessionStorage.removeItem(key)
    else sessionStorage.setItem(key, value)
  })
  drafts.set(name, text)
  return text
}
