import type { EventBus } from '../core/events.ts'

/** An event bus for a single thread. */
export class MemoryEventBus implements EventBus {
  readonly #listeners: ((writtenHere: boolean) => void)[] = []

  notify(): void {
    this.tell(true)
  }

  announce(): void {}

  listen(listener: (writtenHere: boolean) => void): void {
    this.#listeners.push(listener)
  }

  protected tell(writtenHere: boolean): void {
    for (const listener of this.#listeners) listener(writtenHere)
  }
}
