import { useSignal } from '@preact/signals'
import { type ComponentChildren, createContext, type LooseInputHTMLAttributes, type RefObject } from 'preact'
import { useContext, useEffect, useId, useLayoutEffect, useRef } from 'preact/hooks'
import type { Problem } from '../state/problems.ts'

interface Props extends LooseInputHTMLAttributes<HTMLInputElement> {
  readonly label: string
  readonly hint?: ComponentChildren
  /** The most characters, as the service counts them. A longer text is not cut, but said to be too long and not sent. */
  readonly maxLength?: number
  /** For several lines. */
  readonly rows?: number
  /** A button beside the input. */
  readonly children?: ComponentChildren
}

/** The problem of the form around a field. It stands at the field that the service names. */
export const FormProblem = createContext<Problem | undefined>(undefined)

/** An input with its label above, and below it a hint, what is wrong with it, and a counter near its bound. */
export function Field({ label, hint, maxLength = Number.POSITIVE_INFINITY, rows, children, ...input }: Props) {
  const id = useId()
  const element = useFocus(input.autofocus === true)
  const typed = useSignal<string | undefined>(undefined)
  const length = String(input.value ?? typed.value ?? input.defaultValue ?? '').length
  const excess = length - maxLength
  const problem = useContext(FormProblem)
  const dismissed = useSignal<Problem | undefined>(undefined)
  const isRefused = problem?.field !== undefined && problem.field === input.name && problem !== dismissed.value
  const tooLong = excess > 0 ? `${label} is ${excess} ${excess === 1 ? 'character' : 'characters'} too long.` : ''
  const wrong = tooLong || (isRefused ? `${label} ${problem.rest}` : '')
  useEffect(() => {
    element.current?.setCustomValidity(tooLong) // so that the browser does not send it
  }, [tooLong])
  useEffect(() => {
    if (isRefused) element.current?.focus()
  }, [problem])
  const attributes = {
    ...input,
    ref: element,
    id,
    onInput: (event: never) => {
      typed.value = element.current?.value
      dismissed.value = problem
      input.onInput?.(event)
    },
    'aria-invalid': wrong !== '' || undefined,
    'aria-describedby': [hint && `${id}-hint`, wrong && `${id}-wrong`].filter(Boolean).join(' ') || undefined,
  }
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <div class={children === undefined ? undefined : 'with-button'}>
        {rows === undefined ? (
          <input {...(attributes as object)} />
        ) : (
          <textarea {...(attributes as object)} rows={rows} />
        )}
        {children}
      </div>
      {wrong !== '' && (
        <p class="hint wrong" id={`${id}-wrong`}>
          {wrong}
        </p>
      )}
      {hint !== undefined && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {length >= maxLength * 0.8 && (
        <p class="hint counter number">
          {length.toLocaleString('en')} of {maxLength.toLocaleString('en')} characters
        </p>
      )}
    </div>
  )
}

/**
 * Moves the focus to the input as soon as it appears. Later, it could take the focus from a field in which the user is
 * typing already. The browser's `autofocus` works only once per page.
 */
export function useFocus(wanted: boolean): RefObject<HTMLInputElement | null> {
  const element = useRef<HTMLInputElement>(null)
  useLayoutEffect(() => {
    if (wanted) element.current?.focus()
  }, [])
  return element
}

/** The texts of a form, by the names of its fields. */
export function textsOf(form: EventTarget | null): Readonly<Record<string, string>> {
  if (!(form instanceof HTMLFormElement)) return {}
  return Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, String(value)]))
}
