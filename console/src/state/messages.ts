import { signal } from '@preact/signals'

/** What screen readers say, politely, because it happened elsewhere on the page. */
export const announcement = signal('')

export function announce(text: string): void {
  announcement.value = text
}

interface Toast {
  readonly id: number
  readonly text: string
}

/** Short messages that something worked. They disappear by themselves, so nothing important is in them alone. */
export const toasts = signal<readonly Toast[]>([])

let count = 0

export function toast(text: string): void {
  const id = ++count
  toasts.value = [...toasts.value, { id, text }].slice(-3)
  setTimeout(() => {
    toasts.value = toasts.value.filter(each => each.id !== id)
  }, 4000)
}
