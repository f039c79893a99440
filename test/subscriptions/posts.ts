import type { Operation, SocketClient } from '../support/sockets.ts'

const create = 'mutation ($text: String!) { createPost(title: $text, content: $text) { id } }'

/** Creates a post. Returns its id. */
export async function newPost(writer: SocketClient, text = 'T'): Promise<string> {
  return (await writer.read<{ createPost: { id: string } }>(create, { text })).createPost.id
}

/** The ids of the posts or comments in the events. */
export function idsIn({ events }: Operation): readonly string[] {
  return events.flatMap(event => Object.values(event as Record<string, { id: string }>).map(({ id }) => id))
}
