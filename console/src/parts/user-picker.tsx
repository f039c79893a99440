import { useSignal } from '@preact/signals'
import { useEffect, useId, useRef } from 'preact/hooks'
import type { User } from '../../../client/src/index.ts'
import { api } from '../client.ts'
import { nameKnown, names } from '../state/names.ts'
import { searchLength } from '../state/users.ts'
import { useReading } from './action.tsx'
import { Face } from './person.tsx'

export interface Picked {
  readonly id: number
  readonly name: string
}

interface Props {
  readonly label: string
  readonly placeholder: string
  readonly picked: Picked | undefined
  readonly required?: boolean
  readonly onPick: (picked: Picked | undefined) => void
}

/** The time after the last letter until the service is asked. */
export const pauseMs = 200

const steps: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1 }

/** Chooses a user by the beginning of a name or an e-mail, with the keyboard or the pointer. */
export function UserPicker({ label, placeholder, picked, required = false, onPick }: Props) {
  const id = useId()
  /** What is being typed. Absent while the chosen user is shown. */
  const typed = useSignal<string | undefined>(undefined)
  const found = useSignal<{ readonly text: string; readonly users: readonly User[] } | undefined>(undefined)
  const active = useSignal(0)
  const { problem, run } = useReading()
  const text = typed.value?.trim() ?? ''
  useEffect(() => {
    if (text.length < searchLength.least) return
    const show = (users: readonly User[]) => {
      found.value = { text, users }
      active.value = 0
    }
    const ask = () => api.users.list({ q: text, limit: 8 }).first()
    const timer = setTimeout(() => run(ask, ({ items }) => show(items)), pauseMs)
    return () => clearTimeout(timer)
  }, [text])

  const close = () => {
    typed.value = undefined
  }
  const pick = (user: User) => {
    nameKnown([user])
    onPick({ id: user.id, name: user.name })
    close()
  }
  // Enter must not choose from what was found for another text.
  const users = found.value?.text === text ? found.value.users : undefined
  const press = (event: KeyboardEvent) => {
    if (typed.value === undefined) return
    const step = steps[event.key]
    const chosen = users?.[active.value]
    if (step !== undefined && users !== undefined) {
      active.value = (active.value + step + users.length) % (users.length || 1)
    } else if (event.key === 'Enter' && chosen !== undefined) pick(chosen)
    else if (event.key === 'Escape') close()
    else if (event.key !== 'Enter') return
    event.preventDefault() // Enter sends no form, and Escape closes no dialog, while the list is open
  }
  const shown = picked === undefined ? '' : (names.value.get(picked.id) ?? picked.name)
  /** The text at the beginning. Another one means that something was written. */
  const first = useRef(shown).current
  const state = problem?.title ?? (users?.length === 0 ? 'Nobody found' : '')
  return (
    <div class="field picker">
      <label for={id}>{label}</label>
      <input
        id={id}
        type="text"
        role="combobox"
        autocomplete="off"
        spellcheck={false}
        maxLength={searchLength.most}
        placeholder={placeholder}
        required={required}
        aria-autocomplete="list"
        aria-expanded={users !== undefined && users.length > 0}
        aria-controls={`${id}-list`}
        aria-activedescendant={users?.[active.value] && `${id}-${active.value}`}
        defaultValue={first}
        value={typed.value ?? shown}
        onInput={event => {
          typed.value = event.currentTarget.value
          if (typed.value === '' && picked !== undefined) onPick(undefined)
        }}
        onFocus={event => event.currentTarget.select()}
        onBlur={close}
        onKeyDown={press}
      />
      <div class="options" id={`${id}-list`} role="listbox" aria-label="Users that were found" hidden={!users?.length}>
        {users?.map((user, index) => (
          // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the field, which names the active option
          <div
            key={user.id}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === active.value}
            onMouseDown={event => event.preventDefault()} // the field keeps the focus
            onPointerUp={() => pick(user)}
          >
            <Face name={user.name} />
            <span>
              <bdi>{user.name}</bdi>
              <small>{user.email}</small>
            </span>
          </div>
        ))}
      </div>
      <p class="hint" role="status">
        {state}
      </p>
    </div>
  )
}
