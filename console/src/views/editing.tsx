import type { Signal } from '@preact/signals'
import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { isDuetError } from '../../../client/src/index.ts'
import { useAction } from '../parts/action.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { Form } from '../parts/form.tsx'
import { Icon } from '../parts/icon.tsx'
import { Notice } from '../parts/notice.tsx'
import { Versions } from '../parts/versions.tsx'
import { readPost } from '../state/comments.ts'

interface Edit {
  readonly base: { readonly updatedAt: string }
}

interface Props<Kind extends Edit> {
  /** "post" or "comment" */
  readonly what: string
  readonly postId: string
  readonly draft: Signal<Kind | undefined>
  /** What is stored now. */
  readonly stored: Kind['base']
  /** Returns what is stored then. */
  readonly save: (edit: Kind) => Promise<Kind['base']>
  /** The same changes, made to what is stored now. */
  readonly onStored: (edit: Kind) => Kind
  /** The fields that the user has changed, if there are several. */
  readonly changed?: readonly string[]
  /** The labels of the fields, with both versions of them. */
  readonly rows: (edit: Kind) => readonly (readonly [label: string, mine: string, theirs: string])[]
  readonly class?: string
  readonly children: ComponentChildren
}

/**
 * Edits a post or a comment, unless somebody else has changed it meanwhile: then the user sees both versions and
 * chooses. What others change appears beside the edit, never in it.
 */
export function Editing<Kind extends Edit>(props: Props<Kind>) {
  const { what, postId, draft, stored, save, onStored, changed = [], rows, class: look = 'fields', children } = props
  const action = useAction()
  const comparing = useSignal(false)
  const edit = draft.value
  if (edit === undefined) return null
  const done = () => {
    draft.value = undefined
  }
  const trySaving = (mine: Kind) =>
    action.run(async () => {
      try {
        const base = await save(mine)
        const written = draft.peek()
        if (written === edit) done()
        else if (written !== undefined) draft.value = { ...written, base } // the user has gone on writing
      } catch (error) {
        if (!isDuetError(error, 'conflict')) throw error
        await readPost(postId)
        comparing.value = true
      }
    })
  const compare = (isOpen: boolean) => () => {
    comparing.value = isOpen
  }
  return (
    <>
      <Form label={`Edit the ${what}`} class={look} action={action} onLeave={done} onSubmit={() => trySaving(edit)}>
        {stored.updatedAt !== edit.base.updatedAt && (
          <div class="notice warn" role="status">
            <Icon name="warning" />
            <p>
              <strong>Somebody has changed this {what}</strong>What you write stays as it is.
            </p>
            <button type="button" onClick={compare(true)}>
              Compare
            </button>
          </div>
        )}
        {children}
        <div class="actions end">
          <button type="button" onClick={done}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={action.busy}>
            Save
          </button>
        </div>
      </Form>
      {comparing.value && (
        <Dialog title="Somebody else was faster" onClose={compare(false)} wide>
          <Notice problem={action.problem} onAgain={action.again} />
          <Versions rows={rows(edit)} busy={action.busy} onMine={() => trySaving(onStored(edit))} onTheirs={done}>
            While you were editing, somebody has changed this {what}. Nothing of yours is written yet.
            {changed.length > 0 && (
              <>
                {' '}
                You changed: <b>{changed.join(', ')}</b>. Only that is written if you save.
              </>
            )}
          </Versions>
        </Dialog>
      )}
    </>
  )
}
