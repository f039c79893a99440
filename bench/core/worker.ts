import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { cpuOf } from './processes.ts'

/** A process of the benchmark's own that does what it is told, one thing at a time. */
export class Worker<Order extends object> implements AsyncDisposable {
  readonly #child: ChildProcess

  constructor(program: string) {
    this.#child = fork(program, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  }

  async do<Answer>(order: Order): Promise<Answer> {
    const ended = new AbortController()
    const stop = () => ended.abort(new Error('A process of the benchmark ended'))
    this.#child.once('exit', stop)
    this.#child.send(order)
    const [answer] = await once(this.#child, 'message', { signal: ended.signal })
    this.#child.off('exit', stop)
    if (answer.failure !== undefined) throw new Error(answer.failure)
    return answer
  }

  cpu(): number {
    return cpuOf(this.#child.pid ?? 0)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null) return
    const gone = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await gone
  }
}
