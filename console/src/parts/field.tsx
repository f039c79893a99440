import type { ComponentChildren, InputHTMLAttributes, LooseInputHTMLAttributes, RefObject } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'

interface Props extends LooseInputHTMLAttributes<HTMLInputElement> {
  readonly label: string
  readonly hint?: ComponentChildren
}

/** An input with its label above and a hint below. */
export function Field({ label, hint, ...input }: Props) {
  const id = useId()
  const element = useFocus(input.autofocus === true)
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        {...(input as InputHTMLAttributes<HTMLInputElement>)}
        ref={element}
        id={id}
        aria-describedby={hint === undefined ? undefined : `${id}-hint`}
      />
      {hint !== undefined && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
    </div>
  )
}

/** Moves the focus to the input when it appears. The browser's `autofocus` works only once per page. */
export function useFocus(wanted: boolean): RefObject<HTMLInputElement | null> {
  const element = useRef<HTMLInputElement>(null)
  useEffect(() => {
    if (wanted) element.current?.focus()
  }, [])
  return element
}

/** The texts of a form, by the names of its fields. */
export function textsOf(form: EventTarget | null): Readonly<Record<string, string>> {
  if (!(form instanceof HTMLFormElement)) return {}
  return Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, String(value)]))
}
