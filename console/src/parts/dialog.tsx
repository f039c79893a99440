import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'
import { Icon } from './icon.tsx'

interface Props {
  readonly title: string
  readonly onClose: () => void
  readonly wide?: boolean
  readonly children: ComponentChildren
}

/** A modal window. The browser keeps the focus in it, closes it with Escape and gives the focus back. */
export function Dialog({ title, onClose, wide = false, children }: Props) {
  const dialog = useRef<HTMLDialogElement>(null)
  const heading = useId()
  useEffect(() => {
    const element = dialog.current
    const opener = document.activeElement
    element?.showModal()
    return () => {
      element?.close()
      // The element that opened the dialog may disappear when the dialog closes, and the next page may have the focus.
      queueMicrotask(() => {
        if (document.activeElement !== document.body) return
        const target = opener instanceof HTMLElement && opener.isConnected ? opener : document.querySelector('main')
        target?.focus({ preventScroll: true })
      })
    }
  }, [])
  return (
    <dialog
      ref={dialog}
      class={wide ? 'dialog wide' : 'dialog'}
      aria-labelledby={heading}
      onCancel={event => {
        event.preventDefault()
        onClose()
      }}
      onClose={event => {
        if (!event.currentTarget.isConnected) return
        event.currentTarget.showModal() // the browser closes it at the second Escape, but the user may want to stay
        onClose()
      }}
    >
      <header>
        <h2 id={heading}>{title}</h2>
        <button type="button" class="quiet icon-only" aria-label="Close" onClick={onClose}>
          <Icon name="close" />
        </button>
      </header>
      {children}
    </dialog>
  )
}
