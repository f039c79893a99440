import { createTransport } from 'nodemailer'
import { parseConnectionUrl } from 'nodemailer/lib/shared'
import type { Mailer } from '../core/ports.ts'

/**
 * Sends mails to a server. Certificates are checked, and beyond this machine the connection must be encrypted, unless
 * the address says otherwise. Short timeouts, so that a server that hangs does not hold other mails for long.
 */
export function smtpMailer({ url, from }: Readonly<Record<'url' | 'from', string>>, timeoutMs = 5_000): Mailer {
  const given = parseConnectionUrl(url)
  const transport = createTransport({
    requireTLS: !given.secure && !isLoopback(given.host ?? ''),
    ...given,
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    dnsTimeout: timeoutMs,
    socketTimeout: timeoutMs * 2,
    // It would write mails and passwords to standard output.
    logger: false,
    debug: false,
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  return {
    async send({ to, subject, text }) {
      if (!isPlain(to)) throw Object.assign(new Error('The address cannot get mails'), { code: 'EADDRESS' })
      const headers = { 'Auto-Submitted': 'auto-generated' }
      await transport.sendMail({ from, to: { name: '', address: to }, subject, text, headers })
    },
  }
}

/** Users may have stranger addresses. A program that gets the mail could read them as several ones, or as something else. */
function isPlain(address: string): boolean {
  return /^[^\s\p{Cc}<>()[\]\\,;:"@]+@[^\s\p{Cc}<>()[\]\\,;:"@]+$/u.test(address)
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(host)
}
