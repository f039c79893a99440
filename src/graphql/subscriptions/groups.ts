import { createHash } from 'node:crypto'
import type { Tally } from '../../core/ports.ts'
import type { Topic } from '../../core/posts/topics.ts'
import { refusal } from '../errors.ts'
import { Group, type Member, type Subscription } from './group.ts'

export interface GroupLimits {
  /** Maximum number of groups of one client, and of all clients together. */
  readonly groupsPerClient: number
  readonly groups: number
  /** Counts the different groups of each client, and under an empty key those of all clients. */
  readonly groupTally: Tally
}

/** All groups, by subscription, by topic and by client. */
export class Groups {
  readonly #limits: GroupLimits
  readonly #groups = new Map<string, Group>()
  readonly #listening = new Map<string, Set<Group>>()
  readonly #ofClients = new Map<string, Set<Group>>()
  #members = 0

  constructor(limits: GroupLimits) {
    this.#limits = limits
  }

  get size(): number {
    return this.#groups.size
  }

  get members(): number {
    return this.#members
  }

  listeningTo(topic: Topic): readonly Group[] {
    return [...(this.#listening.get(nameOf(topic)) ?? [])]
  }

  join(subscription: Subscription, positions: boolean, member: Member): Group {
    const { client } = member
    const group = this.#groupFor(subscription, positions, client)
    if (group.add(member)) this.#groupsOf(client).add(group)
    this.#members++
    // The owner is the client with fewer groups. So a group with many members does not wait in the queue of a client
    // that has hundreds of other groups.
    if (this.#groupsOf(client).size < this.#groupsOf(group.owner).size) group.owner = client
    return group
  }

  leave(group: Group, member: Member): void {
    if (!group.members.has(member)) return
    this.#members--
    if (group.remove(member)) this.#forgetClient(group, member.client)
    if (!group.isOver) return
    group.forgetBacklog()
    this.#groups.delete(group.id)
    this.#limits.groupTally.leave('', group.id)
    const topic = nameOf(group.subscription.topic)
    const listening = this.#listening.get(topic)
    listening?.delete(group)
    if (listening?.size === 0) this.#listening.delete(topic)
  }

  #groupFor(subscription: Subscription, positions: boolean, client: string): Group {
    const id = groupId(subscription, positions)
    const known = this.#groups.get(id)
    const own = this.#ofClients.get(client)
    if (known !== undefined && own?.has(known)) return known
    const { groups, groupsPerClient, groupTally } = this.#limits
    if (groupTally.join(client, id) > groupsPerClient) {
      groupTally.leave(client, id)
      throw tooMany(`At most ${groupsPerClient} different subscriptions of one client at a time.`)
    }
    if (known !== undefined) return known
    if (groupTally.join('', id) > groups) {
      groupTally.leave('', id)
      groupTally.leave(client, id)
      throw tooMany('There are too many different subscriptions. Try again later.')
    }
    const group = new Group(id, subscription, positions, client)
    this.#groups.set(id, group)
    const topic = nameOf(subscription.topic)
    this.#listening.set(topic, (this.#listening.get(topic) ?? new Set()).add(group))
    return group
  }

  #groupsOf(client: string): Set<Group> {
    let groups = this.#ofClients.get(client)
    if (groups === undefined) {
      groups = new Set()
      this.#ofClients.set(client, groups)
    }
    return groups
  }

  #forgetClient(group: Group, client: string): void {
    const groups = this.#ofClients.get(client)
    groups?.delete(group)
    this.#limits.groupTally.leave(client, group.id)
    if (groups?.size === 0) this.#ofClients.delete(client)
  }
}

/** A hash, because ids are kept in memory and a selection can be long. */
export function groupId({ topic, selection, values }: Subscription, positions: boolean): string {
  return createHash('sha256')
    .update(JSON.stringify([topic, selection, values, positions]))
    .digest('base64')
}

function nameOf(topic: Topic): string {
  return topic.kind === 'posts' ? 'posts' : `comments ${topic.postId}`
}

function tooMany(sentence: string) {
  return refusal('SUBSCRIPTION_LIMIT_EXCEEDED', sentence)
}
