/** The maximum lengths of the texts of posts and comments, in characters. */
export const postBounds = Object.freeze({ title: 300, content: 65_536, comment: 65_536 })

/**
 * The maximum text that one operation may store, in bytes. The limit on the request body is not enough, because an
 * operation can use one variable many times.
 */
export const mostStoredBytes = 1024 * 1024
