import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { WebSocket } from 'ws'

let last = 0

/** A socket with a few subscriptions, some of them unique, which ends in one of several ways. */
export async function subscribeForAWhile(port: number, token: string | undefined, ms: number): Promise<'socket'> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/graphql`, 'graphql-transport-ws')
  socket.on('error', () => {})
  await once(socket, 'open')
  const say = (message: object) => socket.readyState === WebSocket.OPEN && socket.send(JSON.stringify(message))
  const payload = token === undefined ? {} : { authorization: `Bearer ${token}` }
  say({ type: 'connection_init', payload })
  await once(socket, 'message')
  const postId = 1 + Math.floor(Math.random() * 1000)
  const queries = [
    'subscription { postAdded { id title author { name } } }',
    `subscription { postAdded { p${++last}: id title } }`,
    `subscription { commentAdded(postId: ${postId}) { id text author { name } } }`,
    `subscription { commentDeleted(postId: ${postId}) }`,
    'subscription { postUpdated { id title updatedAt } }',
    'subscription { postDeleted }',
    `subscription { postAdded { unknown${++last} } }`,
    '{ posts(limit: 3) { id title } }',
  ]
  for (const [id, query] of queries.entries()) say({ id: String(id), type: 'subscribe', payload: { query } })
  say({ type: 'ping' })
  await delay(ms / 2)
  say({ type: 'complete', id: '0' })
  await delay(ms / 2)
  if (Math.random() < 0.5) socket.terminate()
  else socket.close(1000)
  return 'socket'
}
