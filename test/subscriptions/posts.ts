import type { Operation, SocketClient } from '../support/sockets.ts'

const create = 'mutation ($text: String!) { createPost(title: $text, content: $text) { id } }'

/** Creates a post. Returns its id. */
export const newPost = async (writer: SocketClient, text = 'T'): Promise<string> =>
  (await writer.read<{ createPost: { id: string } }>(create, { text })).createPost.id

/** The ids of the posts or comments in the events. */
export const idsIn = ({ events }: Operation): readonly string[] =>
  events.flatMap(event => Object.values(event as Record<string, { id: string }>).map(({ id }) => id))
