import { copy } from '../parts/copy.ts'
import { Icon } from '../parts/icon.tsx'
import { closeComments } from '../state/comments.ts'
import { newComment, postEdit } from '../state/drafts.ts'
import type { Post } from '../state/lists.ts'
import { forgetPost } from '../state/posts.ts'

/** The place of a post in the feed that somebody deleted while it was read. */
export function GonePost({ post: { id, title } }: { readonly post: Post }) {
  return (
    <li class="card post gone">
      <div class="notice">
        <Icon name="trash" />
        <p>
          <strong>This post is deleted</strong>“{title}” was deleted by its author or an admin.
        </p>
        <button
          type="button"
          onClick={() => {
            closeComments(id)
            forgetPost(id)
          }}
        >
          Close
        </button>
      </div>
      <Unsent postId={id} />
    </li>
  )
}

/** What the user has written about a post that does not exist any more. */
export function Unsent({ postId }: { readonly postId: string }) {
  const comment = newComment(postId)
  const edit = postEdit(postId)
  return (
    <>
      {comment.value !== undefined && (
        <Rest
          label="Your comment, which was not sent"
          text={comment.value}
          onDiscard={() => {
            comment.value = undefined
          }}
        />
      )}
      {edit.value !== undefined && (
        <Rest
          label="Your edit, which was not saved"
          text={`${edit.value.title}\n\n${edit.value.content}`}
          onDiscard={() => {
            edit.value = undefined
          }}
        />
      )}
    </>
  )
}

interface RestProps {
  readonly label: string
  readonly text: string
  readonly onDiscard: () => void
}

/** A text that can only be copied any more. */
export function Rest({ label, text, onDiscard }: RestProps) {
  return (
    <figure class="rest">
      <figcaption class="label">{label}</figcaption>
      <p class="prose">{text}</p>
      <div class="actions">
        <button type="button" onClick={() => copy(text, 'Your text is copied')}>
          <Icon name="copy" /> Copy it
        </button>
        <button type="button" onClick={onDiscard}>
          Discard it
        </button>
      </div>
    </figure>
  )
}
