import { api } from '../client.ts'
import { takeDeletedComment } from './comments.ts'
import { type CommentData, documents, type NewComment, type PostData } from './documents.ts'
import { type CommentEdit, commentEdit, type NewPost, type PostEdit } from './drafts.ts'
import { addPost } from './feed.ts'
import { forgetPost, latestEvent, takeChangedComment, takeNewComment, takePost, whileDeleting } from './posts.ts'

export async function createPost({ title, content }: NewPost): Promise<void> {
  const variables = { title, content }
  addPost((await api.graphql.mutate<{ createPost: PostData }>(documents.createPost, variables)).createPost)
}

/**
 * Writes what the user has changed, unless somebody else has changed the post meanwhile. Returns what is stored now, as
 * the base of another edit.
 */
export async function updatePost(id: string, edit: PostEdit): Promise<PostEdit['base']> {
  const changes = changesOf(edit)
  if (Object.keys(changes).length === 0) return edit.base
  const variables = { id, ...changes, ifUpdatedAt: edit.base.updatedAt }
  const asked = latestEvent()
  const { updatePost } = await api.graphql.mutate<{ updatePost: PostData }>(documents.updatePost, variables)
  takePost(updatePost, asked)
  const { title, content, updatedAt } = updatePost
  return { title, content, updatedAt }
}

/** The fields that differ from the post when the edit began. */
export function changesOf({ base, title, content }: PostEdit): Partial<NewPost> {
  return { ...(title !== base.title && { title }), ...(content !== base.content && { content }) }
}

export async function likePost(id: string): Promise<void> {
  const asked = latestEvent()
  const { likePost } = await api.graphql.mutate<{ likePost: PostData }>(documents.likePost, { id })
  takePost(likePost, asked)
}

export async function deletePost(id: string): Promise<void> {
  await whileDeleting(`post ${id}`, () => api.graphql.mutate(documents.deletePost, { id }))
  forgetPost(id)
}

export async function addComment(postId: string, text: string): Promise<void> {
  const variables = { postId, text }
  takeNewComment(
    postId,
    (await api.graphql.mutate<{ addComment: NewComment }>(documents.addComment, variables)).addComment,
  )
}

export async function updateComment(postId: string, id: string, edit: CommentEdit): Promise<CommentEdit['base']> {
  const { base, text } = edit
  if (text === base.text) return base
  const variables = { id, text, ifUpdatedAt: base.updatedAt }
  const { updateComment } = await api.graphql.mutate<{ updateComment: CommentData }>(documents.updateComment, variables)
  takeChangedComment(postId, updateComment)
  return { text: updateComment.text, updatedAt: updateComment.updatedAt }
}

export async function deleteComment(postId: string, id: string): Promise<void> {
  await whileDeleting(`comment ${id}`, () => api.graphql.mutate(documents.deleteComment, { id }))
  commentEdit(id).value = undefined
  takeDeletedComment(postId, id)
}
