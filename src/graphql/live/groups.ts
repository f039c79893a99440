import { nameOf, type Topic } from '../../core/events.ts'
import { refusal } from '../errors.ts'
import type { Group, Member } from './group.ts'

export interface GroupLimits {
  /** Maximum number of different subscriptions of one client, and of all clients together. */
  readonly groupsPerClient: number
  readonly groups: number
}

/** The live group of each different subscription, and how often each subscription is in use. */
export class Groups {
  readonly #limits: GroupLimits
  readonly #live = new Map<string, Group>()
  readonly #listening = new Map<string, Set<Group>>()
  /** How often a subscription is in use, and how often by each client, by the name of its group. */
  readonly #uses = new Map<string, number>()
  readonly #usesOf = new Map<string, Map<string, number>>()
  #members = 0

  constructor(limits: GroupLimits) {
    this.#limits = limits
  }

  get size(): number {
    return this.#uses.size
  }

  get members(): number {
    return this.#members
  }

  /** Counts one more use of a subscription. Throws if the client or the instance has too many different ones. */
  take(client: string, name: string): void {
    const { groups, groupsPerClient } = this.#limits
    const own = this.#usesOf.get(client) ?? new Map<string, number>()
    if (!own.has(name) && own.size >= groupsPerClient)
      throw tooMany(`At most ${groupsPerClient} different subscriptions of one client at a time.`)
    if (!this.#uses.has(name) && this.size >= groups)
      throw tooMany('There are too many different subscriptions. Try again later.')
    this.#usesOf.set(client, own.set(name, (own.get(name) ?? 0) + 1))
    this.#uses.set(name, (this.#uses.get(name) ?? 0) + 1)
    this.#members++
  }

  giveBack(client: string, name: string): void {
    const own = this.#usesOf.get(client)
    if (own !== undefined) decrease(own, name)
    if (own?.size === 0) this.#usesOf.delete(client)
    decrease(this.#uses, name)
    this.#members--
  }

  live(name: string): Group | undefined {
    return this.#live.get(name)
  }

  isLive(group: Group): boolean {
    return this.#live.get(group.name) === group
  }

  listeningTo(topic: Topic): Iterable<Group> {
    return this.#listening.get(nameOf(topic)) ?? []
  }

  /** Makes a group the live one of its subscription. If there is one, its members join that. */
  goLive(group: Group): void {
    const live = this.#live.get(group.name)
    if (live === group) return
    if (live !== undefined) {
      for (const member of group.members) {
        member.from = group.cursor
        move(member, live)
      }
      return
    }
    this.#live.set(group.name, group)
    const topic = nameOf(group.subscription.topic)
    this.#listening.set(topic, (this.#listening.get(topic) ?? new Set()).add(group))
  }

  leave(member: Member): void {
    const { group } = member
    if (group === undefined) return
    move(member, undefined)
    this.giveBack(member.client, group.name)
    if (group.members.size > 0 || !this.isLive(group)) return
    this.#live.delete(group.name)
    const topic = nameOf(group.subscription.topic)
    const listening = this.#listening.get(topic)
    listening?.delete(group)
    if (listening?.size === 0) this.#listening.delete(topic)
  }
}

export function move(member: Member, group: Group | undefined): void {
  member.group?.members.delete(member)
  member.group = group
  group?.members.add(member)
}

function decrease(counts: Map<string, number>, name: string): void {
  const count = counts.get(name) ?? 0
  if (count > 1) counts.set(name, count - 1)
  else counts.delete(name)
}

function tooMany(sentence: string) {
  return refusal('SUBSCRIPTION_LIMIT_EXCEEDED', sentence)
}
