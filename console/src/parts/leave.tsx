import { useSignal } from '@preact/signals'
import type { ComponentChildren, ComponentProps, RefObject } from 'preact'
import { useRef } from 'preact/hooks'
import { Dialog } from './dialog.tsx'

interface LeaveGuard {
  /** Leaves, after a question if something is written. */
  readonly leave: () => void
  /** The question, to be shown beside the inputs. */
  readonly question: ComponentChildren
}

/** Asks before a text is lost that was written in the inputs below this element. */
export function useLeaveGuard(root: RefObject<HTMLElement | null>, onLeave: () => void): LeaveGuard {
  /** How often it has been asked: each time anew, above a form that the browser has shown again. */
  const asked = useSignal(0)
  const stay = () => {
    asked.value = 0
  }
  const question = asked.value > 0 && (
    <Dialog key={asked.value} title="Discard what you wrote?" onClose={stay}>
      <p>It is not saved anywhere.</p>
      <div class="actions end">
        <button type="button" onClick={stay}>
          Go on writing
        </button>
        <button type="button" class="danger" onClick={onLeave}>
          Discard it
        </button>
      </div>
    </Dialog>
  )
  return {
    leave: () => {
      if (isWritten(root.current)) asked.value++
      else onLeave()
    },
    question,
  }
}

/** A dialog with a form. Closing it asks if something is written. */
export function FormDialog({ onClose, children, ...rest }: ComponentProps<typeof Dialog>) {
  const root = useRef<HTMLDivElement>(null)
  const { leave, question } = useLeaveGuard(root, onClose)
  return (
    <>
      <Dialog {...rest} onClose={leave}>
        <div ref={root}>{children}</div>
      </Dialog>
      {question}
    </>
  )
}

/** Whether an input has another text than at the beginning. */
function isWritten(root: HTMLElement | null): boolean {
  const inputs = root?.querySelectorAll<HTMLInputElement | HTMLTextAreaElement>('input, textarea') ?? []
  return [...inputs].some(({ value, defaultValue }) => value !== defaultValue)
}
