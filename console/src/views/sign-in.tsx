import { useSignal } from '@preact/signals'
import { isDuetError } from '../../../client/src/index.ts'
import { Dialog } from '../parts/dialog.tsx'
import { Field, textsOf } from '../parts/field.tsx'
import { Notice } from '../parts/notice.tsx'
import { settings } from '../settings.ts'
import { type Problem, problemOf } from '../state/problems.ts'
import { signIn, who } from '../state/session.ts'

interface Props {
  readonly reason: 'wanted' | 'ended'
  readonly onDone: (signedIn: boolean) => void
}

/** The sign-in dialog. It opens over the current page, so that nothing is lost. */
export function SignIn({ reason, onDone }: Props) {
  const busy = useSignal(false)
  const problem = useSignal<Problem | undefined>(undefined)
  const { demoLogin } = settings
  const enter = async (email: string, password: string) => {
    busy.value = true
    try {
      await signIn(email, password)
      onDone(true)
    } catch (error) {
      problem.value = isDuetError(error, 'unauthenticated') ? wrongCredentials : problemOf(error)
    } finally {
      busy.value = false
    }
  }
  return (
    <Dialog title={reason === 'ended' ? 'Your session has ended' : 'Sign in'} onClose={() => onDone(false)}>
      {reason === 'ended' && <p class="muted">Sign in again to go on. What you wrote is still there.</p>}
      <Notice problem={problem.value} />
      <form
        class="fields"
        onSubmit={event => {
          event.preventDefault()
          const { email = '', password = '' } = textsOf(event.currentTarget)
          enter(email, password)
        }}
      >
        <Field
          label="E-mail"
          name="email"
          type="email"
          autocomplete="username"
          defaultValue={reason === 'ended' ? (who.value?.email ?? '') : ''}
          required
          autofocus
        />
        <Field label="Password" name="password" type="password" autocomplete="current-password" required />
        <button type="submit" class="primary" disabled={busy.value}>
          {busy.value ? 'Signing in…' : 'Sign in'}
        </button>
      </form>
      {demoLogin !== undefined && (
        <div class="demo">
          <p>
            This service has demo data. Everybody may use its login, <b>{demoLogin.email}</b>.
          </p>
          <button type="button" disabled={busy.value} onClick={() => enter(demoLogin.email, demoLogin.password)}>
            Use the demo login
          </button>
        </div>
      )}
    </Dialog>
  )
}

const wrongCredentials: Problem = {
  kind: 'other',
  title: 'That did not work',
  text: 'The e-mail or the password is wrong.',
  retry: false,
}
