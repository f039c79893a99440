import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { useAction } from '../parts/action.tsx'
import { Confirm } from '../parts/confirm.tsx'
import { Field, textsOf } from '../parts/field.tsx'
import { Icon } from '../parts/icon.tsx'
import { Notice } from '../parts/notice.tsx'
import { Face } from '../parts/person.tsx'
import { Age } from '../parts/time.tsx'
import { closeComments, deletePost, type FeedPost, likePost, readComments, updatePost } from '../state/feed.ts'
import { toast } from '../state/messages.ts'
import { mayChange } from '../state/session.ts'
import { Comments } from './comments.tsx'

export function PostCard({ post }: { readonly post: FeedPost }) {
  const { id, title, content, author, likes, commentCount, publishedAt, comments, arrived } = post
  const editing = useSignal(false)
  const edited = useRef(false)
  const deleting = useSignal(false)
  const action = useAction()
  const isOpen = comments !== undefined
  const card = useRef<HTMLLIElement>(null)
  const close = () => {
    editing.value = false
    deleting.value = false
  }
  useEffect(() => {
    if (!editing.value && edited.current) card.current?.focus() // the form that had the focus is gone
    edited.current = editing.value
  }, [editing.value])
  if (editing.value) return <Editor post={post} onDone={close} />
  return (
    <li ref={card} class={arrived ? 'card post arrived' : 'card post'} tabIndex={-1}>
      <article aria-labelledby={`post-${id}`}>
        <div class="byline">
          <Face name={author.name} />
          <span>
            <b>{author.name}</b>
            {publishedAt && <Age of={publishedAt} />}
          </span>
        </div>
        <h2 id={`post-${id}`}>{title}</h2>
        <Content text={content} />
        <div class="post-actions">
          <button
            type="button"
            class="quiet"
            aria-label={`Like, ${likes} so far`}
            onClick={() => action.run(() => likePost(id))}
          >
            <Icon name="heart" /> <span class="number">{likes}</span>
          </button>
          <button
            type="button"
            class="quiet"
            aria-expanded={isOpen}
            onClick={() => (isOpen ? closeComments(id) : action.run(() => readComments(id)))}
          >
            <Icon name="comment" />
            <span class="number">
              {commentCount} {commentCount === 1 ? 'comment' : 'comments'}
            </span>
          </button>
          <span class="gap" />
          {mayChange(author) && (
            <>
              <button
                type="button"
                class="quiet icon-only"
                aria-label={`Edit “${title}”`}
                onClick={() => {
                  editing.value = true
                }}
              >
                <Icon name="edit" />
              </button>
              <button
                type="button"
                class="quiet icon-only"
                aria-label={`Delete “${title}”`}
                onClick={() => {
                  deleting.value = true
                }}
              >
                <Icon name="trash" />
              </button>
            </>
          )}
        </div>
        <Notice problem={action.problem} onAgain={action.again} />
        {isOpen && <Comments post={post} />}
      </article>
      {deleting.value && (
        <Confirm
          title="Delete this post?"
          verb="Delete the post"
          onClose={close}
          work={async () => {
            await deletePost(id)
            toast('The post is deleted')
          }}
        >
          “{title}” and its comments will be gone for everybody.
        </Confirm>
      )}
    </li>
  )
}

const longText = 800

/** The text of a post. A long text is cut until the user expands it. */
function Content({ text }: { readonly text: string }) {
  const whole = useSignal(text.length <= longText)
  if (whole.value) return <p class="prose">{text}</p>
  return (
    <>
      <p class="prose">{text.slice(0, longText)}…</p>
      <button
        type="button"
        class="quiet"
        onClick={() => {
          whole.value = true
        }}
      >
        Show the whole text
      </button>
    </>
  )
}

function Editor({ post, onDone }: { readonly post: FeedPost; readonly onDone: () => void }) {
  const { busy, problem, run, again } = useAction()
  return (
    <li class="card post">
      <form
        class="fields"
        aria-label="Edit the post"
        onSubmit={event => {
          event.preventDefault()
          const { title = '', content = '' } = textsOf(event.currentTarget)
          run(async () => {
            await updatePost(post.id, title, content)
            onDone()
          })
        }}
      >
        <Notice problem={problem} onAgain={again} />
        <Field label="Title" name="title" defaultValue={post.title} maxLength={300} required autofocus />
        <div class="field">
          <label for={`content-${post.id}`}>Text</label>
          <textarea
            id={`content-${post.id}`}
            name="content"
            rows={5}
            defaultValue={post.content}
            maxLength={65_536}
            required
          />
        </div>
        <div class="actions">
          <button type="button" onClick={onDone}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={busy}>
            Save
          </button>
        </div>
      </form>
    </li>
  )
}
