import type { ComponentChildren } from 'preact'
import { useRef } from 'preact/hooks'
import type { Action } from './action.tsx'
import { FormProblem, textsOf } from './field.tsx'
import { useLeaveGuard } from './leave.tsx'
import { Notice } from './notice.tsx'

interface Props {
  readonly action: Pick<Action, 'problem'>
  /** Gets the texts by the names of the fields. */
  readonly onSubmit: (texts: Readonly<Record<string, string>>) => void
  /** Escape leaves the form, after a question if something is written. */
  readonly onLeave?: () => void
  /** For screen readers. */
  readonly label?: string
  readonly class?: string
  readonly children: ComponentChildren
}

/**
 * A form. What the service refuses is said at the field that it names, anything else above the fields. Ctrl-Enter or
 * Cmd-Enter sends it, also from a text of several lines.
 */
export function Form({ action, onSubmit, onLeave, label, class: look = 'fields', children }: Props) {
  const form = useRef<HTMLFormElement>(null)
  const { leave, question } = useLeaveGuard(form, () => onLeave?.())
  const { problem } = action
  const submit = () => form.current?.requestSubmit() // also for another try: the user may have gone on writing
  const isAtField = problem?.field !== undefined && form.current?.elements.namedItem(problem.field)
  return (
    <>
      <form
        ref={form}
        class={look}
        aria-label={label}
        onSubmit={event => {
          event.preventDefault()
          onSubmit(textsOf(event.currentTarget))
        }}
        onKeyDown={event => {
          const { key, ctrlKey, metaKey, target } = event
          if (key === 'Enter' && (ctrlKey || metaKey) && !(target instanceof HTMLButtonElement)) {
            submit()
          } else if (key === 'Escape' && onLeave !== undefined) {
            event.preventDefault() // otherwise it would close the question
            leave()
          }
        }}
      >
        {!isAtField && <Notice problem={problem} onAgain={submit} />}
        <FormProblem.Provider value={problem}>{children}</FormProblem.Provider>
      </form>
      {question}
    </>
  )
}
