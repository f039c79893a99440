/** The most that a post or a comment may say, in characters. */
export const postBounds = Object.freeze({ title: 300, content: 65_536, comment: 65_536 })

/** The most text that one operation may store, in bytes: a variable can be used many times, and is sent once. */
export const mostStoredBytes = 1024 * 1024
