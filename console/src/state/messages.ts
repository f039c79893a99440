import { signal } from '@preact/signals'

/** The text that screen readers announce for changes elsewhere on the page. */
export const announcement = signal('')

export function announce(text: string): void {
  announcement.value = text
}

interface Toast {
  readonly id: number
  readonly text: string
}

/**
 * Short messages about successful actions. They disappear by themselves, so they contain nothing that the user must
 * read.
 */
export const toasts = signal<readonly Toast[]>([])

let count = 0

export function toast(text: string): void {
  const id = ++count
  toasts.value = [...toasts.value, { id, text }].slice(-3)
  setTimeout(() => {
    toasts.value = toasts.value.filter(each => each.id !== id)
  }, 4000)
}
