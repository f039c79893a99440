import type { ComponentChildren } from 'preact'
import { useAction } from './action.tsx'
import { Dialog } from './dialog.tsx'
import { Notice } from './notice.tsx'

interface Props {
  readonly title: string
  readonly verb: string
  readonly onClose: () => void
  readonly work: () => Promise<void>
  readonly children: ComponentChildren
}

/** Asks before an action that cannot be undone. */
export function Confirm({ title, verb, onClose, work, children }: Props) {
  const { busy, problem, run, again } = useAction()
  return (
    <Dialog title={title} onClose={onClose}>
      <p>{children}</p>
      <Notice problem={problem} onAgain={again} />
      <div class="actions end">
        <button type="button" onClick={onClose}>
          Keep it
        </button>
        <button
          type="button"
          class="danger"
          disabled={busy}
          onClick={() =>
            run(async () => {
              await work()
              onClose()
            })
          }
        >
          {verb}
        </button>
      </div>
    </Dialog>
  )
}
