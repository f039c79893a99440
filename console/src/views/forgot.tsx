import { useSignal } from '@preact/signals'
import { useEffect, useState } from 'preact/hooks'
import { isDuetError } from '../../../client/src/index.ts'
import { api } from '../client.ts'
import { useAction } from '../parts/action.tsx'
import { Empty } from '../parts/empty.tsx'
import { Form } from '../parts/form.tsx'
import { Head } from '../parts/head.tsx'
import { Password } from '../parts/password.tsx'
import { toast } from '../state/messages.ts'
import { go, hideId, href, route } from '../state/route.ts'
import { signOut, who } from '../state/session.ts'
import { Email } from './sign-in.tsx'

/** Asks for a mail with a link to set a new password. What it says does not tell whether there is such an account. */
export function Forgot() {
  const state = useSignal<'asking' | 'sent' | 'no mail'>('asking')
  const action = useAction({ anonymous: true })
  return (
    <>
      <Head title="Forgotten password" text="Get a link by mail, and set a new password with it." />
      {state.value === 'asking' && (
        <div class="card panel entry">
          <Form
            action={action}
            onSubmit={({ email = '' }) =>
              action.run(async () => {
                try {
                  await api.passwordResets.request(email)
                  state.value = 'sent'
                } catch (error) {
                  if (!isDuetError(error) || error.message !== 'No mail is set up') throw error
                  state.value = 'no mail'
                }
              })
            }
          >
            <Email autocomplete="username" />
            <button type="submit" class="primary" disabled={action.busy}>
              Send me a link
            </button>
            <a href={href('sign-in')}>Back to sign in</a>
          </Form>
        </div>
      )}
      {state.value === 'sent' && (
        <Empty icon="clock" title="Look into your mailbox">
          <p role="status">
            If an account has this e-mail, a mail with a link is on its way. The link works once, within 30 minutes.
          </p>
          <button
            type="button"
            onClick={() => {
              state.value = 'asking'
            }}
          >
            Nothing has come? Ask again
          </button>
        </Empty>
      )}
      {state.value === 'no mail' && (
        <Empty icon="warning" title="This service sends no mail">
          <p role="status">No mail is set up here. An admin can give you a new password.</p>
          <a href={href('sign-in')}>Back to sign in</a>
        </Empty>
      )}
    </>
  )
}

/** Sets a new password with the secret of the link. */
export function Reset({ id }: { readonly id: string }) {
  const [secret] = useState(id)
  const isOver = useSignal(id === '')
  const action = useAction({ anonymous: true })
  const current = route.value
  useEffect(() => {
    if (current.id !== undefined) hideId() // it is worth as much as the password
  }, [current])
  return (
    <>
      <Head title="New password" text="Choose the password that you will sign in with from now on." />
      {isOver.value ? (
        <Empty icon="lock" title="This link is no longer valid">
          <p role="alert">A link works once, within 30 minutes, and only until a newer password is set.</p>
          <a class="button" href={href('forgot')}>
            Get a new link
          </a>
        </Empty>
      ) : (
        <div class="card panel entry">
          <Form
            action={action}
            onSubmit={({ password = '' }) =>
              action.run(async () => {
                try {
                  await api.passwordResets.set(secret, password)
                } catch (error) {
                  if (!isDuetError(error, 'notFound')) throw error
                  isOver.value = true
                  return
                }
                if (who.peek() !== undefined) await signOut(false) // all sessions of the user have ended
                toast('Your password is set. Sign in with it.')
                go('sign-in', undefined, { replace: true })
              })
            }
          >
            <Password label="New password" isNew autofocus />
            <p class="hint">You will have to sign in again on all devices.</p>
            <button type="submit" class="primary" disabled={action.busy}>
              Set the password
            </button>
          </Form>
        </div>
      )}
    </>
  )
}
