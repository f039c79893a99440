import { useEffect } from 'preact/hooks'
import { type Action, useAction } from '../parts/action.tsx'
import { Empty } from '../parts/empty.tsx'
import { Field } from '../parts/field.tsx'
import { Notice } from '../parts/notice.tsx'
import { draft } from '../state/drafts.ts'
import { createPost, morePosts, posts, readOlderPosts, readPosts } from '../state/feed.ts'
import { toast } from '../state/messages.ts'
import { askToSignIn, who } from '../state/session.ts'
import { PostCard } from './post.tsx'

/** Posts and comments. New ones come in by themselves. */
export function Feed() {
  const reading = useAction()
  useEffect(() => {
    reading.run(readPosts)
  }, [])
  return (
    <>
      <div class="head">
        <div>
          <h1>Feed</h1>
          <p>What people write here. New posts and comments arrive by themselves.</p>
        </div>
      </div>
      {who.value === undefined ? <Invitation /> : <Composer />}
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

function Composer() {
  const title = draft('title')
  const content = draft('content')
  const { busy, problem, run, again } = useAction()
  const publish = () =>
    run(async () => {
      await createPost(title.peek(), content.peek())
      title.value = ''
      content.value = ''
      toast('Your post is published')
    })
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
        onInput={event => {
          title.value = event.currentTarget.value
        }}
      />
      <div class="field">
        <label for="new-content">Text</label>
        <textarea
          id="new-content"
          rows={3}
          value={content.value}
          maxLength={65_536}
          required
          onInput={event => {
            content.value = event.currentTarget.value
          }}
        />
      </div>
      <div class="actions end">
        <button type="submit" class="primary" disabled={busy}>
          {busy ? 'Publishing…' : 'Publish'}
        </button>
      </div>
    </form>
  )
}
