import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { type Action, useAction } from '../parts/action.tsx'
import { Empty } from '../parts/empty.tsx'
import { Field } from '../parts/field.tsx'
import { Head } from '../parts/head.tsx'
import { Notice } from '../parts/notice.tsx'
import { Face } from '../parts/person.tsx'
import { draft } from '../state/drafts.ts'
import { createPost, morePosts, posts, readOlderPosts, readPosts } from '../state/feed.ts'
import { toast } from '../state/messages.ts'
import { askToSignIn, resuming, who } from '../state/session.ts'
import { PostCard } from './post.tsx'

/** Posts and comments. New ones appear automatically. */
export function Feed() {
  const reading = useAction()
  useEffect(() => {
    reading.run(readPosts)
  }, [])
  return (
    <>
      <Head title="Feed" text="What people write here. New posts and comments arrive by themselves." />
      {resuming.value || (who.value === undefined ? <Invitation /> : <Composer />)}
      <Notice problem={reading.problem} onAgain={reading.again} />
      <PostList reading={reading} />
    </>
  )
}

function PostList({ reading }: { readonly reading: Action }) {
  const shown = posts.value
  if (shown === undefined) return reading.busy ? <p class="muted">Reading…</p> : null
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
      {morePosts.value && (
        <div class="more">
          <button type="button" disabled={reading.busy} onClick={() => reading.run(readOlderPosts)}>
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
      <p>You can read everything. To write, sign in.</p>
      <button type="button" onClick={() => askToSignIn('wanted')}>
        Sign in to write
      </button>
    </div>
  )
}

/** A line that opens a form. The draft is kept in any case. */
function Composer() {
  const title = draft('title')
  const content = draft('content')
  const wanted = useSignal(false)
  const { busy, problem, run, again, clear } = useAction()
  const empty = () => {
    title.value = ''
    content.value = ''
    wanted.value = false
  }
  const publish = () =>
    run(async () => {
      await createPost(title.peek(), content.peek())
      empty()
      toast('Your post is published')
    })
  if (!wanted.value && title.value === '' && content.value === '') {
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
    <form
      class="card composer fields"
      aria-label="New post"
      onSubmit={event => {
        event.preventDefault()
        publish()
      }}
    >
      <Notice problem={problem} onAgain={again} />
      <Field
        label="Title"
        value={title.value}
        maxLength={300}
        required
        autofocus={wanted.value}
        onInput={event => {
          title.value = event.currentTarget.value
        }}
      />
      <div class="field">
        <label for="new-content">Text</label>
        <textarea
          id="new-content"
          rows={4}
          value={content.value}
          maxLength={65_536}
          required
          onInput={event => {
            content.value = event.currentTarget.value
          }}
        />
      </div>
      <div class="actions end">
        <button
          type="button"
          onClick={() => {
            empty()
            clear()
          }}
        >
          Discard
        </button>
        <button type="submit" class="primary" disabled={busy}>
          {busy ? 'Publishing…' : 'Publish'}
        </button>
      </div>
    </form>
  )
}
