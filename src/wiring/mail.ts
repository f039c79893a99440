import type { Config, MailConfig } from '../config.ts'
import { type MailOutcome, ResetSender, type ResetSenderParts } from '../core/password-resets/sender.ts'
import type { Mailer } from '../core/ports.ts'
import type { Base } from './base.ts'

type Given = Pick<ResetSenderParts, 'store' | 'secrets' | 'everyMs'>

/** Sends the mails that wait, if there is a way to send them. `ownUrl`: the address that this service listens on. */
export async function sendMails(
  { mail, explorers }: Config,
  { logger, metrics, observer }: Base,
  { ownUrl, ...given }: Given & { readonly ownUrl: string },
  parts: AsyncDisposableStack,
): Promise<void> {
  if (mail === undefined) return
  if (!explorers) logger.warn('Links in mails lead to /console, which is off: see EXPLORERS')
  const onMail = (outcome: MailOutcome, error?: unknown) => {
    metrics.mails.inc({ outcome })
    // Not the message: servers quote addresses in it.
    const { code, originalCode, responseCode } = (error ?? {}) as Readonly<Record<string, unknown>>
    const reason = { reason: originalCode ?? code ?? 'ETIMEDOUT', status: responseCode }
    if (outcome === 'failed') logger.warn(reason, 'A mail could not be sent. It is tried again')
    if (outcome === 'given up') logger.error(reason, 'A mail could not be sent for ten minutes, and is given up')
  }
  const linkOf = (secret: string) => `${mail.publicUrl ?? ownUrl}/console#/reset/${secret}`
  parts.use(new ResetSender({ ...given, observer, mailer: await mailerOf(mail, logger), linkOf, onMail }))
}

async function mailerOf(config: MailConfig, logger: Base['logger']): Promise<Mailer> {
  if (config.kind === 'smtp') {
    const { smtpMailer } = await import('../mail/smtp-mailer.ts') // loaded only if it is needed
    return smtpMailer(config)
  }
  const { from } = config
  return {
    send: async mail => logger.info({ mail: { from, ...mail } }, 'A mail, which is not sent: SMTP_URL is not set'),
  }
}
