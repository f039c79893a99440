import { useSignal } from '@preact/signals'
import { useAction } from '../parts/action.tsx'
import { Confirm } from '../parts/confirm.tsx'
import { Field } from '../parts/field.tsx'
import { Form } from '../parts/form.tsx'
import { Icon } from '../parts/icon.tsx'
import { Notice } from '../parts/notice.tsx'
import { Face } from '../parts/person.tsx'
import { Age } from '../parts/time.tsx'
import { readerOf, readMoreComments } from '../state/comments.ts'
import { type CommentEdit, commentEdit, newComment } from '../state/drafts.ts'
import type { Comment, Post } from '../state/lists.ts'
import { askToSignIn, mayChange, who } from '../state/session.ts'
import { addComment, deleteComment, updateComment } from '../state/writing.ts'
import { Editing } from './editing.tsx'
import { Rest } from './gone.tsx'

const mostCharacters = 65_536

/** The comments of a post, and the form for a new one. */
export function Comments({ post }: { readonly post: Post }) {
  const { id, title, comments, moreComments } = post
  const reading = readerOf(id)
  const { busy, problem, run, again } = useAction()
  return (
    <section class="comments" aria-label={`Comments on “${title}”`}>
      <Notice problem={reading.problem.value} onAgain={reading.run} />
      {comments === undefined && reading.busy.value && <p class="muted">Reading…</p>}
      {comments?.length === 0 && <p class="muted prose">No comments yet.</p>}
      {comments !== undefined && comments.length > 0 && (
        <ol>
          {comments.map(comment =>
            comment.gone ? (
              <GoneComment key={comment.id} comment={comment} />
            ) : (
              <OneComment key={comment.id} post={post} comment={comment} />
            ),
          )}
        </ol>
      )}
      <Notice problem={problem} onAgain={again} />
      {comments !== undefined && moreComments && (
        <button type="button" disabled={busy} onClick={() => run(() => readMoreComments(id))}>
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
  const draft = newComment(postId)
  const action = useAction()
  return (
    <Form
      class="comment-form"
      action={action}
      onSubmit={({ text = '' }) =>
        action.run(async () => {
          await addComment(postId, text)
          if (draft.peek() === text) draft.value = undefined // otherwise the user has gone on writing
        })
      }
    >
      <Field
        label="Your comment"
        name="text"
        rows={1}
        placeholder="Write a comment"
        value={draft.value ?? ''}
        maxLength={mostCharacters}
        required
        onInput={event => {
          draft.value = event.currentTarget.value || undefined
        }}
      />
      <button type="submit" class="primary" disabled={action.busy}>
        Send
      </button>
    </Form>
  )
}

function OneComment({ post, comment }: { readonly post: Post; readonly comment: Comment }) {
  const { id, text, createdAt, updatedAt, author, arrived } = comment
  const edit = commentEdit(id)
  const isEdited = edit.value !== undefined && mayChange(author)
  const deleting = useSignal(false)
  return (
    <li class={arrived ? 'comment arrived' : 'comment'}>
      <Face name={author.name} />
      <div>
        <div class="comment-head">
          <b>{author.name}</b>
          <span>
            <Age of={createdAt} />
            {updatedAt !== createdAt && ' · edited'}
          </span>
          <span class="actions">
            {mayChange(author) && !isEdited && (
              <button
                type="button"
                class="quiet icon-only"
                aria-label={`Edit the comment of ${author.name}`}
                onClick={() => {
                  edit.value = { base: { text, updatedAt }, text }
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
        {isEdited ? <CommentEditor postId={post.id} comment={comment} /> : <p class="prose">{text}</p>}
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

function CommentEditor({ postId, comment }: { readonly postId: string; readonly comment: Comment }) {
  const { id, text, updatedAt } = comment
  const draft = commentEdit(id)
  const edit = draft.value
  if (edit === undefined) return null
  const stored = { text, updatedAt }
  return (
    <Editing<CommentEdit>
      what="comment"
      class="comment-form"
      postId={postId}
      draft={draft}
      stored={stored}
      save={mine => updateComment(postId, id, mine)}
      onStored={mine => ({ text: mine.text, base: stored })}
      rows={mine => [['Text', mine.text, text]]}
    >
      <Field
        label="The comment"
        name="text"
        rows={2}
        value={edit.text}
        defaultValue={edit.base.text}
        maxLength={mostCharacters}
        required
        autofocus
        onInput={event => {
          draft.value = { ...edit, text: event.currentTarget.value }
        }}
      />
    </Editing>
  )
}

/** The place of a comment that somebody deleted while the user was editing it. */
function GoneComment({ comment: { id } }: { readonly comment: Comment }) {
  const draft = commentEdit(id)
  if (draft.value === undefined) return null
  return (
    <li class="gone">
      <p class="muted">This comment was deleted while you were editing it.</p>
      <Rest
        label="Your edit, which was not saved"
        text={draft.value.text}
        onDiscard={() => {
          draft.value = undefined
        }}
      />
    </li>
  )
}
