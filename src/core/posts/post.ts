/** The most that a post or a comment may say, in characters. */
export const postBounds = Object.freeze({ title: 300, content: 65_536, comment: 65_536 })
