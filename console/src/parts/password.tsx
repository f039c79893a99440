import { useSignal } from '@preact/signals'
import { Field } from './field.tsx'

interface Props {
  readonly label?: string
  readonly name?: string
  /** Whether it is being chosen. Then its rules are shown. */
  readonly isNew?: boolean
  readonly autofocus?: boolean
}

/** A password, which the user can make visible. */
export function Password({ label = 'Password', name = 'password', isNew = false, autofocus = false }: Props) {
  const isShown = useSignal(false)
  return (
    <Field
      label={label}
      name={name}
      type={isShown.value ? 'text' : 'password'}
      autocomplete={isNew ? 'new-password' : 'current-password'}
      autocapitalize="off"
      spellcheck={false}
      required
      autofocus={autofocus}
      {...(isNew && { minLength: 8, maxLength: 128, hint: '8 to 128 characters. A few words are easy to remember.' })}
    >
      <button
        type="button"
        aria-pressed={isShown.value}
        onClick={() => {
          isShown.value = !isShown.value
        }}
      >
        {isShown.value ? 'Hide' : 'Show'}
      </button>
    </Field>
  )
}
