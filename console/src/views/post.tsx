import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { useAction } from '../parts/action.tsx'
import { Confirm } from '../parts/confirm.tsx'
import { copy } from '../parts/copy.ts'
import { Field } from '../parts/field.tsx'
import { Icon } from '../parts/icon.tsx'
import { Notice } from '../parts/notice.tsx'
import { Face } from '../parts/person.tsx'
import { Age } from '../parts/time.tsx'
import { closeComments, openComments } from '../state/comments.ts'
import { type PostEdit, postEdit } from '../state/drafts.ts'
import type { Post } from '../state/lists.ts'
import { toast } from '../state/messages.ts'
import { opened } from '../state/posts.ts'
import { href, keepPlace } from '../state/route.ts'
import { mayChange } from '../state/session.ts'
import { changesOf, deletePost, likePost, updatePost } from '../state/writing.ts'
import { Comments } from './comments.tsx'
import { Editing } from './editing.tsx'
import { GonePost } from './gone.tsx'

/** A post in the feed. */
export function PostCard({ post }: { readonly post: Post }) {
  const { id, title, commentCount, arrived, gone } = post
  const isOpen = opened.value.includes(id)
  if (gone) return <GonePost post={post} />
  return (
    <li class={arrived ? 'card post arrived' : 'card post'}>
      <PostBody
        post={post}
        heading={
          <h2 id={`post-${id}`}>
            <a href={href('posts', id)} onClick={keepPlace}>
              {title}
            </a>
          </h2>
        }
        button={
          <button
            type="button"
            class="quiet"
            aria-expanded={isOpen}
            onClick={() => (isOpen ? closeComments(id) : openComments(id))}
          >
            <CommentCount count={commentCount} />
          </button>
        }
      >
        {isOpen && <Comments post={post} />}
      </PostBody>
    </li>
  )
}

export function CommentCount({ count }: { readonly count: number }) {
  return (
    <span class="count">
      <Icon name="comment" />
      <span class="number">
        {count} {count === 1 ? 'comment' : 'comments'}
      </span>
    </span>
  )
}

interface BodyProps {
  readonly post: Post
  readonly heading: ComponentChildren
  /** What stands beside the button for likes. */
  readonly button: ComponentChildren
  /** Whether the page shows only this post, so that a long text is not cut. */
  readonly whole?: boolean
  readonly onDeleted?: () => void
  /** The comments. */
  readonly children: ComponentChildren
}

/** A post with its buttons, or the form to edit it. */
export function PostBody({ post, heading, button, whole = false, onDeleted, children }: BodyProps) {
  const { id, title, content, author, likes, publishedAt, updatedAt } = post
  const edit = postEdit(id)
  const isEdited = edit.value !== undefined && mayChange(author)
  const wasEdited = useRef(isEdited)
  const deleting = useSignal(false)
  const action = useAction()
  const article = useRef<HTMLElement>(null)
  useEffect(() => {
    if (!isEdited && wasEdited.current) article.current?.focus() // the form that had the focus is gone
    wasEdited.current = isEdited
  }, [isEdited])
  if (isEdited) {
    return (
      <>
        {whole && <h1>Edit the post</h1>}
        <PostEditor post={post} />
      </>
    )
  }
  return (
    <>
      <article ref={article} aria-labelledby={`post-${id}`} tabIndex={-1}>
        <div class="byline">
          <Face name={author.name} />
          <span>
            <b>{author.name}</b>
            {publishedAt && <Age of={publishedAt} />}
            {updatedAt !== publishedAt && (
              <>
                {' · edited '}
                <Age of={updatedAt} />
              </>
            )}
          </span>
        </div>
        {heading}
        <Content id={id} text={content} whole={whole} />
        <div class="post-actions">
          <button
            type="button"
            class="quiet"
            aria-label={`Like, ${likes} so far`}
            onClick={() => action.run(() => likePost(id))}
          >
            <Icon name="heart" /> <span class="number">{likes}</span>
          </button>
          {button}
          <span class="gap" />
          <button
            type="button"
            class="quiet icon-only"
            aria-label={`Copy the link to “${title}”`}
            onClick={() => copy(new URL(href('posts', id), location.href).href, 'The link is copied')}
          >
            <Icon name="link" />
          </button>
          {mayChange(author) && (
            <>
              <button
                type="button"
                class="quiet icon-only"
                aria-label={`Edit “${title}”`}
                onClick={() => {
                  edit.value = { base: { title, content, updatedAt }, title, content }
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
        {children}
      </article>
      {deleting.value && (
        <Confirm
          title="Delete this post?"
          verb="Delete the post"
          onClose={() => {
            deleting.value = false
          }}
          work={async () => {
            await deletePost(id)
            toast('The post is deleted')
            onDeleted?.()
          }}
        >
          “{title}” and its comments will be gone for everybody.
        </Confirm>
      )}
    </>
  )
}

const longText = 800

/** The long texts that the user has expanded in the feed. They stay so on the way back from another page. */
const expanded = new Set<string>()

/** The text of a post. A long text is cut until the user expands it. */
function Content({ id, text, whole }: { readonly id: string; readonly text: string; readonly whole: boolean }) {
  const wanted = useSignal(expanded.has(id))
  if (whole || wanted.value || text.length <= longText) return <p class="prose">{text}</p>
  return (
    <>
      <p class="prose">{text.slice(0, longText)}…</p>
      <button
        type="button"
        class="quiet"
        onClick={() => {
          expanded.add(id)
          wanted.value = true
        }}
      >
        Show the whole text
      </button>
    </>
  )
}

function PostEditor({ post }: { readonly post: Post }) {
  const { id, title, content, updatedAt } = post
  const draft = postEdit(id)
  const edit = draft.value
  if (edit === undefined) return null
  const stored = { title, content, updatedAt }
  return (
    <Editing<PostEdit>
      what="post"
      postId={id}
      draft={draft}
      stored={stored}
      save={mine => updatePost(id, mine)}
      onStored={mine => ({ ...stored, ...changesOf(mine), base: stored })}
      changed={Object.keys(changesOf(edit)).map(name => (name === 'content' ? 'text' : name))}
      rows={mine => [
        ['Title', mine.title, title],
        ['Text', mine.content, content],
      ]}
    >
      <Field
        label="Title"
        name="title"
        value={edit.title}
        defaultValue={edit.base.title}
        maxLength={300}
        required
        autofocus
        onInput={event => {
          draft.value = { ...edit, title: event.currentTarget.value }
        }}
      />
      <Field
        label="Text"
        name="content"
        rows={6}
        value={edit.content}
        defaultValue={edit.base.content}
        maxLength={65_536}
        required
        onInput={event => {
          draft.value = { ...edit, content: event.currentTarget.value }
        }}
      />
    </Editing>
  )
}
