import { createElement, StrictMode, useState } from 'react'
import { createRoot } from 'react-dom/client'
import { connect, live, users } from '../../client/src/index.ts'
import { useLive, useQuery, useRead, useSession } from '../../client/src/react.ts'

/** The page of `react.test.ts`: one line of text that tells what the hooks return. */
const page = globalThis as unknown as {
  readonly document: { readonly body: Parameters<typeof createRoot>[0] }
  readonly location: { readonly origin: string }
  test: {
    readonly seen: string[]
    readonly refetches: Set<() => void>
    readonly reads: {
      readonly id: string
      readonly answer: (data: string) => void
      readonly fail: (error: Error) => void
    }[]
    /** How often `useLive` asked to read the current state. */
    anew: number
  }
}
let duet = connect({ url: page.location.origin })

function Post({ id }: { readonly id: string }) {
  const { data, error, isLoading, refetch } = useQuery(duet, {
    post: { $: { id }, title: true, comments: { $: { limit: 100 }, text: true } },
  })
  const comments = { $: { postId: id }, text: true } as const
  const [newest, setNewest] = useState('none')
  const added = useLive(duet, { commentAdded: comments }, event => {
    if (event === undefined) page.test.anew++
    else setNewest(`${newest} ${event.commentAdded.text}`)
    refetch()
  })
  Object.assign(page.test, { refetch })
  page.test.refetches.add(refetch)
  const texts = data?.post?.comments.map(({ text }) => text)
  const post = data === undefined ? 'no data' : data.post === null ? 'no post' : `${data.post.title}: ${texts?.length}`
  const parts = [
    added.state,
    added.error?.kind,
    `${id} ${post}, newest ${newest}`,
    isLoading && 'loading',
    error?.message,
  ]
  page.test.seen.push(parts.join(' | '))
  return parts.join(' | ')
}

function Own() {
  const session = useSession(duet)
  const { data, error } = useRead(duet, 'me', signal => users(duet).me({ signal }))
  useLive(duet, { postDeleted: true }, () => void page.test.anew++)
  return `user ${session?.userId ?? 'none'}: ${data?.name ?? error?.message}`
}

/** Reads what the test answers, whatever the signal says. */
function Answered({ id }: { readonly id: string }) {
  const { data, error, isLoading, refetch } = useRead(
    duet,
    id,
    () => new Promise<string>((answer, fail) => void page.test.reads.push({ id, answer, fail })),
  )
  Object.assign(page.test, { refetch })
  return `${id}: ${data}, ${error?.message}, ${isLoading ? 'loading' : 'done'}`
}

/** Compiled, never rendered: the types of the hooks are those of `query` and `subscribe`. */
export function Refused() {
  // @ts-expect-error: "Post has no field nope"
  useQuery(duet, { posts: { title: true, nope: true } })
  // @ts-expect-error: the id of the post is missing
  useLive(duet, { commentAdded: true }, () => {})
  const { data } = useQuery(duet, { posts: { title: true } })
  // @ts-expect-error: nothing may have been read yet
  return data.posts[0]?.title
}

const views = { post: Post, own: Own, answered: Answered }
const root = createRoot(page.document.body)
page.test = Object.assign(
  { seen: [], refetches: new Set<() => void>(), reads: [], anew: 0 },
  {
    duet,
    live: () => live(duet).state.state,
    connectAnew: () => {
      duet = connect({ url: page.location.origin })
    },
    show: (view: keyof typeof views | 'nothing', id = '1') =>
      root.render(
        view === 'nothing' ? null : createElement(StrictMode, null, createElement(views[view] as typeof Post, { id })),
      ),
  },
)
