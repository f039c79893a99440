import { useEffect } from 'preact/hooks'
import { Head } from '../parts/head.tsx'
import { Notice } from '../parts/notice.tsx'
import { openPage, readerOf } from '../state/comments.ts'
import { missing, posts } from '../state/posts.ts'
import { go, goBack, href } from '../state/route.ts'
import { Comments } from './comments.tsx'
import { Unsent } from './gone.tsx'
import { CommentCount, PostBody } from './post.tsx'

/** A post on its own page, with its comments. What others change appears automatically. */
export function PostPage({ id }: { readonly id: string }) {
  useEffect(() => openPage(id), [id])
  const post = posts.value.get(id)
  useEffect(() => {
    if (post !== undefined && !post.gone) document.title = `${post.title} · Duet console`
  }, [post?.title, post?.gone])
  const { busy, problem, run } = readerOf(id)
  return (
    <>
      <p class="back">
        <a
          href={href('feed')}
          onClick={event => {
            if (goBack('feed')) event.preventDefault()
          }}
        >
          Feed
        </a>
      </p>
      <Notice problem={problem.value} onAgain={run} />
      {post?.gone || (post === undefined && missing.value === id) ? (
        <>
          {post === undefined ? (
            <Head title="There is no such post" text="It is deleted, or it never existed." />
          ) : (
            <Head title="This post is deleted" text={`“${post.title}” was deleted by its author or an admin.`} />
          )}
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
            button={<CommentCount count={post.commentCount} />}
            onDeleted={() => go('feed', undefined, { replace: true })}
          >
            <Comments post={post} />
          </PostBody>
        </div>
      )}
    </>
  )
}
