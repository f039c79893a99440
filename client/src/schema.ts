// The types of api/schema.graphql. `npm run build` writes this file, and a test compares them.
export type Maybe<T> = T | null;
export type InputMaybe<T> = Maybe<T>;
/** All built-in and custom scalars, mapped to their actual values */
export type Scalars = {
  ID: { input: string | number; output: string; }
  String: { input: string; output: string; }
  Boolean: { input: boolean; output: boolean; }
  Int: { input: number; output: number; }
  Float: { input: number; output: number; }
  /**
   * An instant. Out: `2026-01-31T12:00:00.000Z`. In: an ISO-8601 date and time (seconds and their fraction may be left out)
   * with `Z` or an offset, such as `2026-01-31T13:00+01:00`.
   */
  DateTime: { input: string; output: string; }
};

/** Somebody who writes. */
export type User = {
  __typename?: 'User';
  /** Names the user. The same as in the HTTP interface, where it is a number. */
  id: Scalars['ID']['output'];
  /** As the user wants to be called. */
  name: Scalars['String']['output'];
  /**
   * Under the access policy `enforced` for admins; users see their own where it is asked for directly: on `me`, on
   * `user(id)` with their own id, and on the author of what they just created.
   */
  email: Scalars['String']['output'];
  /** The http or https address of a picture. */
  avatar: Maybe<Scalars['String']['output']>;
  /** What the user has written, newest first. */
  posts: Array<Post>;
  /** When the user joined. */
  createdAt: Scalars['DateTime']['output'];
};


/** Somebody who writes. */
export type UserPostsArgs = {
  limit?: InputMaybe<Scalars['Int']['input']>;
  offset?: InputMaybe<Scalars['Int']['input']>;
  after?: InputMaybe<Scalars['ID']['input']>;
};

/** Something written for others to read. */
export type Post = {
  __typename?: 'Post';
  /** Names the post. Later posts have higher ids. */
  id: Scalars['ID']['output'];
  /** At most 300 characters. */
  title: Scalars['String']['output'];
  /** At most 65,536 characters. */
  content: Scalars['String']['output'];
  /** Who wrote it. */
  author: User;
  /** What others say about it, oldest first. */
  comments: Array<Comment>;
  /** How many comments it has. */
  commentCount: Scalars['Int']['output'];
  /** How often it was liked. */
  likes: Scalars['Int']['output'];
  /** When it was published, if it is. */
  publishedAt: Maybe<Scalars['DateTime']['output']>;
  /**
   * When its title or content was last changed; of one that never was, when it was published. Later with every change, so it
   * names the state that `updatePost` may require.
   */
  updatedAt: Scalars['DateTime']['output'];
};


/** Something written for others to read. */
export type PostCommentsArgs = {
  limit?: InputMaybe<Scalars['Int']['input']>;
  offset?: InputMaybe<Scalars['Int']['input']>;
  after?: InputMaybe<Scalars['ID']['input']>;
};

/** Something said about a post. */
export type Comment = {
  __typename?: 'Comment';
  /** Names the comment. Later comments have higher ids. */
  id: Scalars['ID']['output'];
  /** At most 65,536 characters. */
  text: Scalars['String']['output'];
  /** Who said it. */
  author: User;
  /** What it is about. */
  post: Post;
  /** When it was said. */
  createdAt: Scalars['DateTime']['output'];
  /** When its text was last changed; of one that never was, when it was said. Later with every change. */
  updatedAt: Scalars['DateTime']['output'];
};

/** What can be read. One operation, however nested, is one look at the data: all of it is of the same moment. */
export type Query = {
  __typename?: 'Query';
  /** The user with this id, if there is one. */
  user: Maybe<User>;
  /** All users, in the order of their ids. */
  users: Array<User>;
  /** The post with this id, if there is one. */
  post: Maybe<Post>;
  /**
   * All posts, newest first. With `publishedAfter` or `publishedBefore` only those published in between, the instants
   * themselves excluded, latest publication first.
   */
  posts: Array<Post>;
  /** The user of the token. Needs one. */
  me: Maybe<User>;
};


/** What can be read. One operation, however nested, is one look at the data: all of it is of the same moment. */
export type QueryUserArgs = {
  id: Scalars['ID']['input'];
};


/** What can be read. One operation, however nested, is one look at the data: all of it is of the same moment. */
export type QueryUsersArgs = {
  limit?: InputMaybe<Scalars['Int']['input']>;
  offset?: InputMaybe<Scalars['Int']['input']>;
  after?: InputMaybe<Scalars['ID']['input']>;
};


/** What can be read. One operation, however nested, is one look at the data: all of it is of the same moment. */
export type QueryPostArgs = {
  id: Scalars['ID']['input'];
};


/** What can be read. One operation, however nested, is one look at the data: all of it is of the same moment. */
export type QueryPostsArgs = {
  limit?: InputMaybe<Scalars['Int']['input']>;
  offset?: InputMaybe<Scalars['Int']['input']>;
  after?: InputMaybe<Scalars['ID']['input']>;
  publishedAfter?: InputMaybe<Scalars['DateTime']['input']>;
  publishedBefore?: InputMaybe<Scalars['DateTime']['input']>;
};

/**
 * What can be changed. The fields of one operation are done one after the other, all or none: when one fails, nothing has
 * happened.
 */
export type Mutation = {
  __typename?: 'Mutation';
  /** Publishes a post of the token's user. Needs a token. */
  createPost: Post;
  /**
   * Changes the title or the content of a post, or both. What is not given, or `null`, stays as it is; one of them must be
   * given. For its author and admins.
   */
  updatePost: Post;
  /** Deletes a post with its comments: `true` when it did, `false` when there was none. For its author and admins. */
  deletePost: Scalars['Boolean']['output'];
  /** Adds one to the likes of a post, every time. Under the access policy `enforced` it needs a token. */
  likePost: Post;
  /** Says something about a post, as the token's user. Needs a token. */
  addComment: Comment;
  /** Changes the text of a comment. For its author and admins. */
  updateComment: Comment;
  /** Deletes a comment: `true` when it did, `false` when there was none. For its author, the author of its post, and admins. */
  deleteComment: Scalars['Boolean']['output'];
};


/**
 * What can be changed. The fields of one operation are done one after the other, all or none: when one fails, nothing has
 * happened.
 */
export type MutationCreatePostArgs = {
  title: Scalars['String']['input'];
  content: Scalars['String']['input'];
};


/**
 * What can be changed. The fields of one operation are done one after the other, all or none: when one fails, nothing has
 * happened.
 */
export type MutationUpdatePostArgs = {
  id: Scalars['ID']['input'];
  title?: InputMaybe<Scalars['String']['input']>;
  content?: InputMaybe<Scalars['String']['input']>;
  ifUpdatedAt?: InputMaybe<Scalars['DateTime']['input']>;
};


/**
 * What can be changed. The fields of one operation are done one after the other, all or none: when one fails, nothing has
 * happened.
 */
export type MutationDeletePostArgs = {
  id: Scalars['ID']['input'];
};


/**
 * What can be changed. The fields of one operation are done one after the other, all or none: when one fails, nothing has
 * happened.
 */
export type MutationLikePostArgs = {
  id: Scalars['ID']['input'];
};


/**
 * What can be changed. The fields of one operation are done one after the other, all or none: when one fails, nothing has
 * happened.
 */
export type MutationAddCommentArgs = {
  postId: Scalars['ID']['input'];
  text: Scalars['String']['input'];
};


/**
 * What can be changed. The fields of one operation are done one after the other, all or none: when one fails, nothing has
 * happened.
 */
export type MutationUpdateCommentArgs = {
  id: Scalars['ID']['input'];
  text: Scalars['String']['input'];
  ifUpdatedAt?: InputMaybe<Scalars['DateTime']['input']>;
};


/**
 * What can be changed. The fields of one operation are done one after the other, all or none: when one fails, nothing has
 * happened.
 */
export type MutationDeleteCommentArgs = {
  id: Scalars['ID']['input'];
};

/** What happens. Sent over a WebSocket, each event once and in order. */
export type Subscription = {
  __typename?: 'Subscription';
  /** A post was added. */
  postAdded: Post;
  /** The title or content of a post was changed, by `updatePost`. Likes and comments are not told here. */
  postUpdated: Post;
  /** A post was deleted: its id. Its comments are gone with it. */
  postDeleted: Scalars['ID']['output'];
  /** A comment was added to this post. Ends when the post is deleted. */
  commentAdded: Comment;
  /** A comment on this post was changed. Ends when the post is deleted. */
  commentUpdated: Comment;
  /** A comment on this post was deleted: its id. Ends when the post is deleted. */
  commentDeleted: Scalars['ID']['output'];
};


/** What happens. Sent over a WebSocket, each event once and in order. */
export type SubscriptionCommentAddedArgs = {
  postId: Scalars['ID']['input'];
};


/** What happens. Sent over a WebSocket, each event once and in order. */
export type SubscriptionCommentUpdatedArgs = {
  postId: Scalars['ID']['input'];
};


/** What happens. Sent over a WebSocket, each event once and in order. */
export type SubscriptionCommentDeletedArgs = {
  postId: Scalars['ID']['input'];
};

/** The arguments of the fields that take some. */
export type Arguments = {
  User: {
    posts: UserPostsArgs,
  },
  Post: {
    comments: PostCommentsArgs,
  },
  Comment: {
  },
  Query: {
    user: QueryUserArgs,
    users: QueryUsersArgs,
    post: QueryPostArgs,
    posts: QueryPostsArgs,
  },
  Mutation: {
    createPost: MutationCreatePostArgs,
    updatePost: MutationUpdatePostArgs,
    deletePost: MutationDeletePostArgs,
    likePost: MutationLikePostArgs,
    addComment: MutationAddCommentArgs,
    updateComment: MutationUpdateCommentArgs,
    deleteComment: MutationDeleteCommentArgs,
  },
  Subscription: {
    commentAdded: SubscriptionCommentAddedArgs,
    commentUpdated: SubscriptionCommentUpdatedArgs,
    commentDeleted: SubscriptionCommentDeletedArgs,
  },
};

/** Fields that not everybody may read. */
export type PrivateField = 'email';

export type FieldFacts = { type?: string; args?: { [name: string]: string }; private?: true };

/** What is needed to write the document of a selection. */
export const fields: { [type: string]: { [field: string]: FieldFacts } } = {
  User: {
    id: {},
    name: {},
    email: {"private":true},
    avatar: {},
    posts: {"type":"Post","args":{"limit":"Int","offset":"Int","after":"ID"}},
    createdAt: {},
  },
  Post: {
    id: {},
    title: {},
    content: {},
    author: {"type":"User"},
    comments: {"type":"Comment","args":{"limit":"Int","offset":"Int","after":"ID"}},
    commentCount: {},
    likes: {},
    publishedAt: {},
    updatedAt: {},
  },
  Comment: {
    id: {},
    text: {},
    author: {"type":"User"},
    post: {"type":"Post"},
    createdAt: {},
    updatedAt: {},
  },
  Query: {
    user: {"type":"User","args":{"id":"ID!"}},
    users: {"type":"User","args":{"limit":"Int","offset":"Int","after":"ID"}},
    post: {"type":"Post","args":{"id":"ID!"}},
    posts: {"type":"Post","args":{"limit":"Int","offset":"Int","after":"ID","publishedAfter":"DateTime","publishedBefore":"DateTime"}},
    me: {"type":"User"},
  },
  Mutation: {
    createPost: {"type":"Post","args":{"title":"String!","content":"String!"}},
    updatePost: {"type":"Post","args":{"id":"ID!","title":"String","content":"String","ifUpdatedAt":"DateTime"}},
    deletePost: {"args":{"id":"ID!"}},
    likePost: {"type":"Post","args":{"id":"ID!"}},
    addComment: {"type":"Comment","args":{"postId":"ID!","text":"String!"}},
    updateComment: {"type":"Comment","args":{"id":"ID!","text":"String!","ifUpdatedAt":"DateTime"}},
    deleteComment: {"args":{"id":"ID!"}},
  },
  Subscription: {
    postAdded: {"type":"Post"},
    postUpdated: {"type":"Post"},
    postDeleted: {},
    commentAdded: {"type":"Comment","args":{"postId":"ID!"}},
    commentUpdated: {"type":"Comment","args":{"postId":"ID!"}},
    commentDeleted: {"args":{"postId":"ID!"}},
  },
};
