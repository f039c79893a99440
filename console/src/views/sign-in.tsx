import { signal, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { api } from '../client.ts'
import { type Action, useAction } from '../parts/action.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { Field } from '../parts/field.tsx'
import { Form } from '../parts/form.tsx'
import { Head } from '../parts/head.tsx'
import { Notice } from '../parts/notice.tsx'
import { Password } from '../parts/password.tsx'
import { settings } from '../settings.ts'
import { toast } from '../state/messages.ts'
import { href, route } from '../state/route.ts'
import { comeBack, signIn, who } from '../state/session.ts'

type Way = 'sign-in' | 'sign-up'

const ways: readonly Way[] = ['sign-in', 'sign-up']
const titles = { 'sign-in': 'Sign in', 'sign-up': 'Create an account' } as const

/** The e-mail that was typed last. It stays when the user turns from one form to another. */
export const typedEmail = signal('')

interface DialogProps {
  readonly reason: 'wanted' | 'ended'
  readonly onDone: (signedIn: boolean) => void
}

/** Opens over the current page, so that nothing is lost. */
export function SignInDialog({ reason, onDone }: DialogProps) {
  const way = useSignal<Way>('sign-in')
  const hasEnded = reason === 'ended'
  useEffect(() => {
    if (hasEnded) typedEmail.value = who.peek()?.email ?? ''
  }, [])
  return (
    <Dialog title={hasEnded ? 'Your session has ended' : titles[way.value]} onClose={() => onDone(false)}>
      {hasEnded && <p class="muted">Sign in again to go on. What you wrote is still there.</p>}
      <Entry
        way={way.value}
        onlySignIn={hasEnded}
        onWay={chosen => {
          way.value = chosen
        }}
        onDone={onDone}
      />
    </Dialog>
  )
}

/** The same as a page, for links. */
export function SignInPage() {
  const way = useSignal<Way>(route.value.name === 'sign-up' && settings.signUp === 'open' ? 'sign-up' : 'sign-in')
  const isSignedIn = who.value !== undefined
  useEffect(() => {
    if (isSignedIn) comeBack()
  }, [isSignedIn])
  return (
    <>
      <Head title={titles[way.value]} text="Write posts and comments, order, and see what is yours." />
      <div class="card panel entry">
        <Entry
          way={way.value}
          onWay={chosen => {
            way.value = chosen
            history.replaceState(null, '', href(chosen))
          }}
          onDone={() => {}}
        />
      </div>
    </>
  )
}

interface Props {
  readonly way: Way
  readonly onlySignIn?: boolean
  readonly onWay: (way: Way) => void
  readonly onDone: (signedIn: boolean) => void
}

/** Both ways in: with an account, and without one yet. */
function Entry({ way, onlySignIn = false, onWay, onDone }: Props) {
  const isOpen = settings.signUp === 'open' && !onlySignIn
  const turn = (event: KeyboardEvent) => {
    if (event.key !== 'ArrowLeft' && event.key !== 'ArrowRight') return
    onWay(way === 'sign-in' ? 'sign-up' : 'sign-in')
    const tabs = event.currentTarget as HTMLElement
    requestAnimationFrame(() => tabs.querySelector<HTMLElement>('[aria-selected=true]')?.focus())
  }
  return (
    <>
      {isOpen && (
        <div class="ways" role="tablist" aria-label="Ways in" onKeyDown={turn}>
          {ways.map(each => (
            <button
              type="button"
              role="tab"
              key={each}
              aria-selected={each === way}
              tabIndex={each === way ? 0 : -1}
              onClick={() => onWay(each)}
            >
              {titles[each]}
            </button>
          ))}
        </div>
      )}
      {way === 'sign-in' ? <SignIn onDone={onDone} /> : <SignUp onCreated={() => onWay('sign-in')} onDone={onDone} />}
      {settings.signUp === 'closed' && !onlySignIn && (
        <p class="hint">You have no account? Here only admins create accounts: ask one of them.</p>
      )}
    </>
  )
}

function SignIn({ onDone }: Pick<Props, 'onDone'>) {
  const action = useAction({ anonymous: true })
  const demo = useAction({ anonymous: true })
  const { demoLogin } = settings
  const enter = ({ run }: Action, email: string, password: string) =>
    run(async () => {
      await signIn(email, password)
      typedEmail.value = ''
      onDone(true)
    })
  return (
    <>
      <Form action={action} onSubmit={({ email = '', password = '' }) => enter(action, email, password)}>
        <Email autocomplete="username" />
        <Password />
        <button type="submit" class="primary" disabled={action.busy}>
          {action.busy ? 'Signing in…' : 'Sign in'}
        </button>
        <a href={href('forgot')} onClick={() => onDone(false)}>
          I forgot my password
        </a>
      </Form>
      {demoLogin !== undefined && (
        <div class="demo">
          <p>
            This service has demo data. Everybody may use its login, <b>{demoLogin.email}</b>.
          </p>
          <button type="button" disabled={demo.busy} onClick={() => enter(demo, demoLogin.email, demoLogin.password)}>
            Use the demo login
          </button>
          <Notice problem={demo.problem} onAgain={demo.again} />
        </div>
      )}
    </>
  )
}

function SignUp({ onCreated, onDone }: Pick<Props, 'onDone'> & { readonly onCreated: () => void }) {
  const action = useAction({ anonymous: true })
  return (
    <Form
      action={action}
      onSubmit={({ name = '', email = '', password = '' }) =>
        action.run(async () => {
          await api.users.create({ name, email, password })
          toast('Your account is created')
          try {
            await signIn(email, password)
          } catch {
            return onCreated() // the account is there: signing in can be tried again
          }
          typedEmail.value = ''
          onDone(true)
        })
      }
    >
      <Field label="Name" name="name" autocomplete="name" maxLength={320} required autofocus hint="Others see it." />
      <Email autocomplete="email" {...(settings.policy === 'enforced' && { hint: 'Only you and admins see it.' })} />
      <Password isNew />
      <button type="submit" class="primary" disabled={action.busy}>
        {action.busy ? 'Creating…' : 'Create the account'}
      </button>
    </Form>
  )
}

export function Email({ autocomplete, hint }: { readonly autocomplete: string; readonly hint?: string }) {
  return (
    <Field
      label="E-mail"
      name="email"
      type="email"
      autocomplete={autocomplete}
      value={typedEmail.value}
      maxLength={320}
      required
      autofocus={autocomplete === 'username'}
      {...(hint !== undefined && { hint })}
      onInput={event => {
        typedEmail.value = event.currentTarget.value
      }}
    />
  )
}
