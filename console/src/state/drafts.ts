import { type Signal, signal } from '@preact/signals'
import type { CommentData, PostData } from './documents.ts'
import { who } from './session.ts'

export interface NewPost {
  readonly title: string
  readonly content: string
}

export interface PostEdit extends NewPost {
  /** The post when the edit began. */
  readonly base: Pick<PostData, 'title' | 'content' | 'updatedAt'>
}

export interface CommentEdit {
  readonly base: Pick<CommentData, 'text' | 'updatedAt'>
  readonly text: string
}

/**
 * What the signed-in user is writing. It survives errors, other pages of the console and a reload. The next user does
 * not see it.
 */
function draft<Value>(name: string): Signal<Value | undefined> {
  const key = `duet-draft-${who.value?.id}-${name}`
  const known = drafts.get(key)
  if (known !== undefined) return known as Signal<Value | undefined>
  const stored = sessionStorage.getItem(key)
  const value = signal<Value | undefined>(stored === null ? undefined : JSON.parse(stored))
  value.subscribe(written => keep(key, written))
  drafts.set(key, value)
  return value
}

const drafts = new Map<string, Signal<unknown>>()

export const newPost = () => draft<NewPost>('new-post')
export const postEdit = (id: string) => draft<PostEdit>(`post-${id}`)
export const newComment = (postId: string) => draft<string>(`comment-on-${postId}`)
export const commentEdit = (id: string) => draft<CommentEdit>(`comment-${id}`)

/** Whether the user is editing the post, or is writing a comment on it. */
export function isWrittenAbout(postId: string): boolean {
  return postEdit(postId).value !== undefined || newComment(postId).value !== undefined
}

function keep(key: string, written: unknown): void {
  try {
    if (written === undefined) sessionStorage.removeItem(key)
    else sessionStorage.setItem(key, JSON.stringify(written))
  } catch {
    // The storage is full. The draft is still on the page.
  }
}
