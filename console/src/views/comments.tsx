import { useSignal } from '@preact/signals'
import { useAction } from '../parts/action.tsx'
import { Confirm } from '../parts/confirm.tsx'
import { textsOf, useFocus } from '../parts/field.tsx'
import { Icon } from '../parts/icon.tsx'
import { Notice } from '../parts/notice.tsx'
import { Face } from '../parts/person.tsx'
import { Age } from '../parts/time.tsx'
import { draft } from '../state/drafts.ts'
import {
  addComment,
  deleteComment,
  type FeedComment,
  type FeedPost,
  readComments,
  updateComment,
} from '../state/feed.ts'
import { askToSignIn, mayChange, who } from '../state/session.ts'

/** The comments of a post, and the form for a new one. */
export function Comments({ post }: { readonly post: FeedPost }) {
  const { id, title, comments = [], moreComments } = post
  const { busy, problem, run, again } = useAction()
  return (
    <section class="comments" aria-label={`Comments on “${title}”`}>
      <Notice problem={problem} onAgain={again} />
      {comments.length === 0 && <p class="muted prose">No comments yet.</p>}
      {comments.length > 0 && (
        <ol>
          {comments.map(comment => (
            <Comment key={comment.id} post={post} comment={comment} />
          ))}
        </ol>
      )}
      {moreComments && (
        <button type="button" disabled={busy} onClick={() => run(() => readComments(id, true))}>
          Show more comments
        </button>
      )}
      {who.value === undefined ? (
        <button type="button" onClick={() => askToSignIn('wanted')}>
          Sign in to comment
        </button>
      ) : (
        <NewComment postId={id} />
      )}
    </section>
  )
}

function NewComment({ postId }: { readonly postId: string }) {
  const text = draft(`comment-${postId}`)
  const { busy, problem, run, again } = useAction()
  return (
    <>
      <Notice problem={problem} onAgain={again} />
      <form
        class="comment-form"
        onSubmit={event => {
          event.preventDefault()
          run(async () => {
            await addComment(postId, text.peek())
            text.value = ''
          })
        }}
      >
        <input
          aria-label="Your comment"
          placeholder="Write a comment"
          value={text.value}
          required
          onInput={event => {
            text.value = event.currentTarget.value
          }}
        />
        <button type="submit" class="primary" disabled={busy}>
          Send
        </button>
      </form>
    </>
  )
}

function Comment({ post, comment }: { readonly post: FeedPost; readonly comment: FeedComment }) {
  const { id, text, createdAt, author, arrived } = comment
  const editing = useSignal(false)
  const deleting = useSignal(false)
  const { busy, problem, run, again } = useAction()
  return (
    <li class={arrived ? 'comment arrived' : 'comment'}>
      <Face name={author.name} />
      <div>
        <div class="comment-head">
          <b>{author.name}</b>
          <Age of={createdAt} />
          <span class="actions">
            {mayChange(author) && !editing.value && (
              <button
                type="button"
                class="quiet icon-only"
                aria-label={`Edit the comment of ${author.name}`}
                onClick={() => {
                  editing.value = true
                }}
              >
                <Icon name="edit" />
              </button>
            )}
            {(mayChange(author) || mayChange(post.author)) && (
              <button
                type="button"
                class="quiet icon-only"
                aria-label={`Delete the comment of ${author.name}`}
                onClick={() => {
                  deleting.value = true
                }}
              >
                <Icon name="trash" />
              </button>
            )}
          </span>
        </div>
        {editing.value ? (
          <Editor
            text={text}
            busy={busy}
            onClose={() => {
              editing.value = false
            }}
            onSave={changed =>
              run(async () => {
                await updateComment(post.id, id, changed)
                editing.value = false
              })
            }
          />
        ) : (
          <p class="prose">{text}</p>
        )}
        <Notice problem={problem} onAgain={again} />
      </div>
      {deleting.value && (
        <Confirm
          title="Delete this comment?"
          verb="Delete the comment"
          onClose={() => {
            deleting.value = false
          }}
          work={() => deleteComment(post.id, id)}
        >
          The comment of {author.name} will be gone for everybody.
        </Confirm>
      )}
    </li>
  )
}

interface EditorProps {
  readonly text: string
  readonly busy: boolean
  readonly onClose: () => void
  readonly onSave: (text: string) => void
}

function Editor({ text, busy, onClose, onSave }: EditorProps) {
  const input = useFocus(true)
  return (
    <form
      class="comment-form"
      onSubmit={event => {
        event.preventDefault()
        onSave(textsOf(event.currentTarget).text ?? '')
      }}
    >
      <input ref={input} name="text" aria-label="The comment" defaultValue={text} required />
      <button type="button" onClick={onClose}>
        Cancel
      </button>
      <button type="submit" class="primary" disabled={busy}>
        Save
      </button>
    </form>
  )
}
