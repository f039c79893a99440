import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import type { Mail } from '../../src/core/ports.ts'
import type { LogLine } from '../support/logs.ts'
import { waitUntil } from '../support/wait.ts'

export interface Received {
  readonly from: string
  readonly to: readonly string[]
  readonly isEncrypted: boolean
  readonly user: unknown
  /** The mail as it was sent, and its text without the encoding of long lines. */
  readonly raw: string
  readonly text: string
}

/** The status of a refusal of each kind, or a lost connection after the mail has arrived. */
export type Trouble = { readonly connection: 421 } | { readonly recipient: 550 } | { readonly mail: 451 | 'lost' }

export interface MailServer extends AsyncDisposable {
  readonly port: number
  readonly mails: Received[]
  /** Settings of a service that sends its mails here. */
  readonly env: { readonly SMTP_URL: string; readonly MAIL_FROM: string; readonly PUBLIC_URL: string }
  received(count?: number): Promise<Received>
  /** What it does instead of taking a mail, if this is set. */
  trouble: Trouble | undefined
}

/** A real mail server in this process, on a free port. Without further options: neither encryption nor login. */
export async function startMailServer(options: SMTPServerOptions = {}, port = 0): Promise<MailServer> {
  const mails: Received[] = []
  const sockets = new Set<Socket>()
  const refused = (about: string, responseCode: number | undefined) =>
    responseCode === undefined ? null : Object.assign(new Error(`No: ${about}`), { responseCode })
  const own: Pick<MailServer, 'trouble'> = { trouble: undefined }
  const troubleWith = (name: string) => Reflect.get(own.trouble ?? {}, name)
  const server = new SMTPServer({
    disabledCommands: ['AUTH', 'STARTTLS'],
    closeTimeout: 1,
    onConnect: (_session, done) => done(refused('connection', troubleWith('connection'))),
    onRcptTo: ({ address }, _session, done) => done(refused(address, troubleWith('recipient'))),
    onData(stream, { envelope, secure, user }, done) {
      const chunks: Buffer[] = []
      stream.on('data', chunk => chunks.push(chunk))
      stream.on('end', () => {
        const raw = Buffer.concat(chunks).toString()
        const from = envelope.mailFrom === false ? '' : envelope.mailFrom.address
        const to = envelope.rcptTo.map(({ address }) => address)
        const trouble = troubleWith('mail')
        if (trouble === 'lost') for (const socket of sockets) socket.destroy()
        else if (trouble !== undefined) done(refused(to.join(), trouble))
        if (trouble !== undefined) return
        mails.push({ from, to, isEncrypted: secure, user, raw, text: textOf(raw) })
        done()
      })
    },
    ...options,
  })
  server.server.on('connection', socket => sockets.add(socket))
  server.on('error', () => {}) // clients may leave at any time
  server.listen(port, '127.0.0.1')
  await once(server.server, 'listening')
  const { port: found } = server.server.address() as AddressInfo
  const scheme = options.secure ? 'smtps' : 'smtp'
  return Object.assign(own, {
    port: found,
    mails,
    env: {
      SMTP_URL: `${scheme}://127.0.0.1:${found}`,
      MAIL_FROM: 'Duet <duet@example.com>',
      PUBLIC_URL: 'https://duet.example',
    },
    async received(count = 1) {
      await waitUntil(() => mails.length >= count)
      return mails[count - 1] as Received
    },
    [Symbol.asyncDispose]: () => new Promise<void>(resolve => server.close(() => resolve())),
  })
}

/** The body. Lines that were too long for a mail end in `=` where they go on. */
function textOf(raw: string): string {
  const body = raw.slice(raw.indexOf('\r\n\r\n') + 4).replaceAll('\r\n', '\n')
  return /^content-transfer-encoding: quoted-printable/im.test(raw)
    ? body.replaceAll('=\n', '').replaceAll(/=([\dA-F]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
    : body
}

/** The secret in the link of a mail. */
export const secretIn = (text: string): string => /\/console#\/reset\/([\w-]{43})\n/.exec(text)?.[1] ?? ''

/** The secret in a mail to this address that a service without a mail server has written to its log. */
export async function loggedSecret(logs: readonly LogLine[], email: string): Promise<string> {
  const find = () => logs.map(({ mail }) => mail as Mail | undefined).findLast(mail => mail?.to === email)
  await waitUntil(() => find() !== undefined)
  return secretIn(find()?.text ?? '')
}
