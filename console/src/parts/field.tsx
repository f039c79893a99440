import type { ComponentChildren, InputHTMLAttributes, LooseInputHTMLAttributes } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'

interface Props extends LooseInputHTMLAttributes<HTMLInputElement> {
  readonly label: string
  readonly hint?: ComponentChildren
}

/** An input with its label above and a hint below. */
export function Field({ label, hint, ...input }: Props) {
  const id = useId()
  const element = useRef<HTMLInputElement>(null)
  useEffect(() => {
    if (input.autofocus) element.current?.focus()
  }, [])
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        {...(input as InputHTMLAttributes<HTMLInputElement>)}
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

/** The texts of a form, by the names of its fields. */
export function textsOf(form: EventTarget | null): Readonly<Record<string, string>> {
  if (!(form instanceof HTMLFormElement)) return {}
  return Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, String(value)]))
}
