/** Everything the core keeps. Each method is atomic and durable once it has answered. */
export interface Store {
  /** Answers when both reading and writing are possible; rejects with `unavailable` otherwise. */
  ping(): Promise<void>
}
