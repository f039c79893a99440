import { useEffect } from 'preact/hooks'
import { Empty } from '../parts/empty.tsx'
import { Icon } from '../parts/icon.tsx'
import { Notice } from '../parts/notice.tsx'
import { openPage, readerOf } from '../state/comments.ts'
import { missing, posts } from '../state/posts.ts'
import { go, goBack, href } from '../state/route.ts'
import { Comments } from './comments.tsx'
import { Unsent } from './gone.tsx'
import { PostBody } from './post.tsx'

/** A post on its own page, with its comments. What others change appears automatically. */
export function PostPage({ id }: { readonly id: string }) {
  useEffect(() => openPage(id), [id])
  const post = posts.value.get(id)
  const title = post?.title ?? 'Post'
  useEffect(() => {
    document.title = `${title} · Duet console`
  }, [title])
  const { busy, problem, run } = readerOf(id)
  return (
    <>
      <a
        class="back"
        href={href('feed')}
        onClick={event => {
          if (goBack('feed')) event.preventDefault()
        }}
      >
        <Icon name="back" /> Feed
      </a>
      <Notice problem={problem.value} onAgain={run} />
      {post?.gone || (post === undefined && missing.value === id) ? (
        <>
          <Empty icon="trash" title={post === undefined ? 'There is no such post' : 'This post is deleted'}>
            <p>
              {post === undefined
                ? 'It is deleted, or it never existed.'
                : `“${post.title}” was deleted by its author or an admin.`}
            </p>
          </Empty>
          <Unsent postId={id} />
        </>
      ) : post === undefined ? (
        busy.value && <p class="muted">Reading…</p>
      ) : (
        <div class="card post alone">
          <PostBody
            post={post}
            whole
            heading={<h1 id={`post-${id}`}>{post.title}</h1>}
            onDeleted={() => go('feed', undefined, { replace: true })}
          >
            <Comments post={post} />
          </PostBody>
        </div>
      )}
    </>
  )
}
