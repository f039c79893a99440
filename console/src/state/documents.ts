import type { Schema } from '../../../client/src/index.ts'

/** The operations of the feed. Each costs less than the service's limit of 1000. */

type Author = Pick<Schema.User, 'id' | 'name'>

export type PostData = Pick<Schema.Post, 'id' | 'title' | 'content' | 'likes' | 'commentCount' | 'publishedAt'> & {
  readonly author: Author
}

export type CommentData = Pick<Schema.Comment, 'id' | 'text' | 'createdAt'> & { readonly author: Author }

export type NewComment = CommentData & { readonly post: Pick<Schema.Post, 'commentCount'> }

const postFields = 'id title content likes commentCount publishedAt author { id name }'
const commentFields = 'id text createdAt author { id name }'

export const documents = {
  posts: `query Posts($limit: Int!, $after: ID) { posts(limit: $limit, after: $after) { ${postFields} } }`,
  comments: `query Comments($postId: ID!, $limit: Int!, $after: ID) {
  post(id: $postId) { comments(limit: $limit, after: $after) { ${commentFields} } }
}`,
  createPost: `mutation Create($title: String!, $content: String!) {
  createPost(title: $title, content: $content) { ${postFields} }
}`,
  updatePost: `mutation Update($id: ID!, $title: String!, $content: String!) {
  updatePost(id: $id, title: $title, content: $content) { ${postFields} }
}`,
  deletePost: 'mutation Delete($id: ID!) { deletePost(id: $id) }',
  likePost: `mutation Like($id: ID!) { likePost(id: $id) { ${postFields} } }`,
  addComment: `mutation Comment($postId: ID!, $text: String!) {
  addComment(postId: $postId, text: $text) { ${commentFields} post { commentCount } }
}`,
  updateComment: `mutation UpdateComment($id: ID!, $text: String!) {
  updateComment(id: $id, text: $text) { ${commentFields} }
}`,
  deleteComment: 'mutation DeleteComment($id: ID!) { deleteComment(id: $id) }',
  postAdded: `subscription { postAdded { ${postFields} } }`,
  commentAdded: `subscription ($postId: ID!) {
  commentAdded(postId: $postId) { ${commentFields} post { commentCount } }
}`,
} as const
