import type { Mail } from '../ports.ts'

/** For how many minutes a link is valid. */
export const validMinutes = 30

/** Nothing in it comes from a user but the address: whoever signs up with the address of another could write to them. */
export function resetMail(to: string, link: string): Mail {
  return {
    to,
    subject: 'Your new password',
    text: `Somebody, probably you, asked for a new password for your account.
To choose one, open this link within ${validMinutes} minutes:

${link}

It works once. If you did not ask for it, you need not do anything:
your password stays as it is.
`,
  }
}
