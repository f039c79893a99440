import type { EventBus } from '../core/events.ts'

/** An event bus for a single process. */
export class MemoryEventBus implements EventBus {
  readonly #listeners: (() => void)[] = []

  notify(): void {
    for (const listener of this.#listeners) listener()
  }

  listen(listener: () => void): void {
    this.#listeners.push(listener)
  }
}
