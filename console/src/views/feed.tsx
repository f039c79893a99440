import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { useAction } from '../parts/action.tsx'
import { Empty } from '../parts/empty.tsx'
import { Field } from '../parts/field.tsx'
import { Form } from '../parts/form.tsx'
import { Head } from '../parts/head.tsx'
import { Notice } from '../parts/notice.tsx'
import { Face } from '../parts/person.tsx'
import { newPost } from '../state/drafts.ts'
import { feed, morePosts, openFeed, readFeed, readOlderPosts } from '../state/feed.ts'
import { toast } from '../state/messages.ts'
import { askToSignIn, resuming, who } from '../state/session.ts'
import { createPost } from '../state/writing.ts'
import { PostCard } from './post.tsx'

/** Posts and comments. What others write, change or delete appears automatically. */
export function Feed() {
  useEffect(openFeed, [])
  return (
    <>
      <Head title="Feed" text="Read what people write, and answer them. What others do appears by itself." />
      {resuming.value || (who.value === undefined ? <Invitation /> : <Composer />)}
      <Notice problem={readFeed.problem.value} onAgain={readFeed.run} />
      <PostList />
    </>
  )
}

function PostList() {
  const { busy, problem, run, again } = useAction()
  const shown = feed.value
  if (shown === undefined) return readFeed.problem.value === undefined ? <p class="muted">Reading…</p> : null
  if (shown.length === 0) {
    return (
      <Empty icon="feed" title="Nothing has been written yet">
        <p>Be the first. Everybody who has this page open sees it at once.</p>
      </Empty>
    )
  }
  return (
    <>
      <ol class="posts" aria-label="Posts, newest first">
        {shown.map(post => (
          <PostCard key={post.id} post={post} />
        ))}
      </ol>
      <Notice problem={problem} onAgain={again} />
      {morePosts.value && (
        <div class="more">
          <button type="button" disabled={busy} onClick={() => run(readOlderPosts)}>
            Show older posts
          </button>
        </div>
      )}
    </>
  )
}

function Invitation() {
  return (
    <div class="notice">
      <p>You can read all posts. To write, sign in.</p>
      <button type="button" onClick={() => askToSignIn('wanted')}>
        Sign in to write
      </button>
    </div>
  )
}

/** A line that opens a form. The draft is kept in any case. */
function Composer() {
  const draft = newPost()
  const written = draft.value
  const { title, content } = written ?? { title: '', content: '' }
  const wanted = useSignal(false)
  const action = useAction()
  const close = () => {
    draft.value = undefined
    wanted.value = false
    action.clear()
  }
  if (!wanted.value && written === undefined) {
    return (
      <button
        type="button"
        class="card composer-line"
        onClick={() => {
          wanted.value = true
        }}
      >
        <Face name={who.value?.name ?? ''} /> Write a post
      </button>
    )
  }
  return (
    <Form
      class="card composer fields"
      label="New post"
      action={action}
      onLeave={close}
      onSubmit={() =>
        action.run(async () => {
          await createPost({ title, content })
          if (draft.peek() === written) close() // otherwise the user has gone on writing
          toast('Your post is published')
        })
      }
    >
      <Field
        label="Title"
        name="title"
        value={title}
        maxLength={300}
        required
        autofocus={wanted.value}
        onInput={event => {
          draft.value = { title: event.currentTarget.value, content }
        }}
      />
      <Field
        label="Text"
        name="content"
        rows={4}
        value={content}
        maxLength={65_536}
        required
        onInput={event => {
          draft.value = { title, content: event.currentTarget.value }
        }}
      />
      <div class="actions end">
        <button type="button" onClick={close}>
          Discard
        </button>
        <button type="submit" class="primary" disabled={action.busy}>
          {action.busy ? 'Publishing…' : 'Publish'}
        </button>
      </div>
    </Form>
  )
}
