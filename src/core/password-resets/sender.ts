import { oneAtATime } from '../../lib/one-at-a-time.ts'
import { within } from '../../lib/within.ts'
import { isOutage } from '../errors.ts'
import type { Mailer, Secrets, StoreObserver } from '../ports.ts'
import type { DueReset, ResetStore } from '../store.ts'
import { resetMail } from './mail.ts'

export interface ResetSenderParts {
  readonly store: ResetStore
  readonly mailer: Mailer
  readonly secrets: Secrets
  /** The address of the page where the password is set. */
  readonly linkOf: (secret: string) => string
  readonly observer: Pick<StoreObserver, 'trouble'>
  readonly everyMs?: number | undefined
  readonly onMail: (outcome: MailOutcome, error?: unknown) => void
}

export type MailOutcome = 'sent' | 'failed' | 'given up'

/**
 * Sends the mails that wait in the store. Each instance looks for them; one that takes a mail has it for a minute, then
 * the mail is due again. So no request waits for a mail server, and no restart loses a mail. The secret is made when the
 * mail is sent, and stored as a hash: nobody finds a valid one in the store.
 */
export class ResetSender implements AsyncDisposable {
  readonly #parts: ResetSenderParts
  readonly #look: () => Promise<void>
  readonly #timer: NodeJS.Timeout
  #stopped = false

  constructor(parts: ResetSenderParts) {
    this.#parts = parts
    this.#look = oneAtATime(() => this.#sendAll())
    // Other threads and instances store requests too, so there is nobody who could tell.
    this.#timer = setInterval(this.#look, parts.everyMs ?? 1_000).unref()
    void this.#look()
  }

  /** A mail that is not sent by then is sent after the next start, or by another instance. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    this.#stopped = true
    await within(this.#look(), lastMs, 'A mail takes long').catch(() => {})
  }

  async #sendAll(): Promise<void> {
    const { store, secrets, observer } = this.#parts
    try {
      while (!this.#stopped && (await store.hasDueResets())) {
        const made = Array.from({ length: together }, () => secrets.make())
        const due = await store.takeResets(made.map(({ hash }) => hash))
        const secretOf = new Map(made.map(({ secret, hash }) => [hash, secret]))
        await Promise.all(due.map(reset => this.#send(reset, secretOf.get(reset.hash) ?? '')))
      }
    } catch (error) {
      if (!isOutage(error)) observer.trouble('Mails could not be sent', error)
    }
  }

  async #send({ id, email, tries }: DueReset, secret: string): Promise<void> {
    const { store, mailer, linkOf, onMail } = this.#parts
    try {
      await within(mailer.send(resetMail(email, linkOf(secret))), longestMs, 'The mail server takes too long')
    } catch (error) {
      const isOver = (await store.postponeReset(id, Math.min(firstPause * 2 ** (tries - 1), longestPause))) === 'over'
      return onMail(isOver ? 'given up' : 'failed', error)
    }
    await store.endReset(id)
    onMail('sent')
  }
}

const together = 5
/** Shorter than a mail is taken for. */
const longestMs = 30_000
/** In seconds. */
const firstPause = 5
const longestPause = 120
/** The process must exit within ten seconds. */
const lastMs = 400
