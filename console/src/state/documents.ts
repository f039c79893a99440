import type { Schema } from '../../../client/src/index.ts'

/** The operations of the feed and of posts. Each costs less than the service's limit of 1000. */

type Author = Pick<Schema.User, 'id' | 'name'>

export type PostData = Pick<
  Schema.Post,
  'id' | 'title' | 'content' | 'likes' | 'commentCount' | 'publishedAt' | 'updatedAt'
> & { readonly author: Author }

export type CommentData = Pick<Schema.Comment, 'id' | 'text' | 'createdAt' | 'updatedAt'> & { readonly author: Author }

export type NewComment = CommentData & { readonly post: Pick<Schema.Post, 'commentCount'> }

/** The numbers of a post that change without an event. */
export type Figures = Pick<Schema.Post, 'id' | 'likes' | 'commentCount'>

const postFields = 'id title content likes commentCount publishedAt updatedAt author { id name }'
const commentFields = 'id text createdAt updatedAt author { id name }'

export const documents = {
  posts: `query Posts($limit: Int!, $after: ID) { posts(limit: $limit, after: $after) { ${postFields} } }`,
  figures: 'query Figures($limit: Int!) { posts(limit: $limit) { id likes commentCount } }',
  figuresOfOne: 'query Figures($id: ID!) { post(id: $id) { id likes commentCount } }',
  post: `query Post($id: ID!, $limit: Int!, $after: ID) {
  post(id: $id) { ${postFields} comments(limit: $limit, after: $after) { ${commentFields} } }
}`,
  createPost: `mutation Create($title: String!, $content: String!) {
  createPost(title: $title, content: $content) { ${postFields} }
}`,
  updatePost: `mutation Update($id: ID!, $title: String, $content: String, $ifUpdatedAt: DateTime!) {
  updatePost(id: $id, title: $title, content: $content, ifUpdatedAt: $ifUpdatedAt) { ${postFields} }
}`,
  deletePost: 'mutation Delete($id: ID!) { deletePost(id: $id) }',
  likePost: `mutation Like($id: ID!) { likePost(id: $id) { ${postFields} } }`,
  addComment: `mutation Comment($postId: ID!, $text: String!) {
  addComment(postId: $postId, text: $text) { ${commentFields} post { commentCount } }
}`,
  updateComment: `mutation UpdateComment($id: ID!, $text: String!, $ifUpdatedAt: DateTime!) {
  updateComment(id: $id, text: $text, ifUpdatedAt: $ifUpdatedAt) { ${commentFields} }
}`,
  deleteComment: 'mutation DeleteComment($id: ID!) { deleteComment(id: $id) }',
  postAdded: `subscription { postAdded { ${postFields} } }`,
  postUpdated: `subscription { postUpdated { ${postFields} } }`,
  postDeleted: 'subscription { postDeleted }',
  commentAdded: `subscription ($postId: ID!) {
  commentAdded(postId: $postId) { ${commentFields} post { commentCount } }
}`,
  commentUpdated: `subscription ($postId: ID!) { commentUpdated(postId: $postId) { ${commentFields} } }`,
  commentDeleted: 'subscription ($postId: ID!) { commentDeleted(postId: $postId) }',
} as const
