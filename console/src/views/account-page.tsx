import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { isDuetError, type User, type UserChanges, type UserInput } from '../../../client/src/index.ts'
import { api } from '../client.ts'
import { useAction, useReading } from '../parts/action.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { Field } from '../parts/field.tsx'
import { Form } from '../parts/form.tsx'
import { Head } from '../parts/head.tsx'
import { Notice } from '../parts/notice.tsx'
import { Password } from '../parts/password.tsx'
import { RoleBadge } from '../parts/person.tsx'
import { toast } from '../state/messages.ts'
import { go, href } from '../state/route.ts'
import { changePassword, deleteAccount, seesAll, signOut, userChanged, who } from '../state/session.ts'
import { Conflict } from './conflict.tsx'

/** What a signed-in user can do with the own account. */
export function AccountPage() {
  const person = who.value
  const me = useSignal<User | undefined>(undefined)
  const reading = useReading()
  const show = (user: User) => {
    me.value = user
    userChanged(user)
  }
  useEffect(() => {
    reading.run(() => api.users.me(), show)
  }, [person?.id])
  if (person === undefined) return null
  // Who sees the orders and payments of all finds the own ones by a filter, and on the own page.
  return (
    <>
      <Head title="Account" text="Change what others see of you, your password, and where you are signed in." />
      <Notice problem={reading.problem} onAgain={reading.again} />
      <p>
        <RoleBadge role={person.role} /> · <a href={`${href('orders')}?user=${person.id}`}>My orders</a> ·{' '}
        <a href={seesAll.value ? href('users', person.id) : href('payments')}>
          {seesAll.value ? 'My page' : 'My payments'}
        </a>
      </p>
      {me.value?.id === person.id && <Profile me={me.value} onChange={show} />}
      <NewPassword email={person.email} />
      <Sessions />
      <Deletion />
    </>
  )
}

function Profile({ me, onChange }: { readonly me: User; readonly onChange: (user: User) => void }) {
  const action = useAction()
  /** Both versions, if another device was faster. */
  const conflict = useSignal<{ readonly mine: UserInput; readonly theirs: User } | undefined>(undefined)
  /** Renews the inputs. */
  const version = useSignal(0)
  const settle = (user: User) => {
    conflict.value = undefined
    version.value++
    onChange(user)
  }
  const save = (mine: UserInput, base: User) =>
    action.run(async () => {
      try {
        await api.users.update(base, changesOf(me, mine))
        settle(await api.users.get(me.id))
        toast('Your profile is saved')
      } catch (error) {
        if (!isDuetError(error, 'conflict') || error.status !== 412) throw error
        conflict.value = { mine, theirs: await api.users.get(me.id) }
      }
    })
  return (
    <section class="card panel" aria-labelledby="profile">
      <h2 id="profile">Profile</h2>
      <Form
        key={version.value}
        action={action}
        onSubmit={({ name = '', email = '', age = '', avatar = '' }) =>
          save({ name, email, age: age === '' ? null : Number(age), avatar: avatar === '' ? null : avatar }, me)
        }
      >
        <Field label="Name" name="name" autocomplete="name" defaultValue={me.name} maxLength={320} required />
        <Field
          label="E-mail"
          name="email"
          type="email"
          autocomplete="email"
          defaultValue={me.email}
          maxLength={320}
          required
          hint="You sign in with it."
        />
        <Field label="Age" name="age" type="number" min={0} max={150} defaultValue={me.age ?? ''} />
        <Field
          label="Avatar"
          name="avatar"
          type="url"
          autocomplete="photo"
          defaultValue={me.avatar ?? ''}
          maxLength={2048}
          placeholder="https://example.com/me.png"
          hint="The address of a picture, for other programs. The console shows initials."
        />
        <div class="actions end">
          <button type="submit" class="primary" disabled={action.busy}>
            Save the profile
          </button>
        </div>
      </Form>
      {conflict.value !== undefined && (
        <Dialog
          title="Somebody else was faster"
          onClose={() => {
            conflict.value = undefined
          }}
          wide
        >
          <Notice problem={action.problem} onAgain={action.again} />
          <Conflict
            {...conflict.value}
            changed={Object.keys(changesOf(me, conflict.value.mine))}
            busy={action.busy}
            onMine={() => conflict.value && save(conflict.value.mine, conflict.value.theirs)}
            onTheirs={() => conflict.value && settle(conflict.value.theirs)}
          />
        </Dialog>
      )}
    </section>
  )
}

/** Only these fields are written, so that no other change is lost. */
function changesOf(user: User, { name, email, age = null, avatar = null }: UserInput): UserChanges {
  return {
    ...(name !== user.name && { name }),
    ...(email !== user.email && { email }),
    ...(age !== (user.age ?? null) && { age }),
    ...(avatar !== (user.avatar ?? null) && { avatar }),
  }
}

function NewPassword({ email }: { readonly email: string }) {
  const action = useAction()
  /** Empties the inputs. */
  const changes = useSignal(0)
  return (
    <section class="card panel" aria-labelledby="password">
      <h2 id="password">Password</h2>
      <Form
        key={changes.value}
        action={action}
        onSubmit={({ present = '', password = '' }) =>
          action.run(async () => {
            await changePassword(present, password)
            changes.value++
            toast('Your password is changed')
          })
        }
      >
        {/* So that a password manager knows whose password it is. */}
        <input hidden type="email" autocomplete="username" value={email} readOnly />
        <Password label="Present password" name="present" />
        <Password label="New password" isNew />
        <p class="hint">You stay signed in here. Everywhere else you must sign in again.</p>
        <div class="actions end">
          <button type="submit" class="primary" disabled={action.busy}>
            {action.busy ? 'Changing…' : 'Change the password'}
          </button>
        </div>
      </Form>
    </section>
  )
}

function Sessions() {
  const { busy, problem, run, again } = useAction()
  return (
    <section class="card panel" aria-labelledby="sessions">
      <h2 id="sessions">Sessions</h2>
      <Notice problem={problem} onAgain={again} />
      <p class="muted">End all your sessions, this one too, if you have lost a device or forgot to sign out.</p>
      <div class="actions end">
        <button
          type="button"
          disabled={busy}
          onClick={() =>
            run(async () => {
              await signOut(true)
              go('sign-in')
              toast('You are signed out on all devices')
            })
          }
        >
          Sign out on all devices
        </button>
      </div>
    </section>
  )
}

function Deletion() {
  const isAsked = useSignal(false)
  const action = useAction()
  const close = () => {
    isAsked.value = false
    action.clear()
  }
  return (
    <section class="card panel" aria-labelledby="deletion">
      <h2 id="deletion">Delete the account</h2>
      <p class="muted">Your posts and comments go, too. Your orders and payments stay with the service.</p>
      <div class="actions end">
        <button
          type="button"
          class="danger"
          onClick={() => {
            isAsked.value = true
          }}
        >
          Delete my account
        </button>
      </div>
      {isAsked.value && (
        <Dialog title="Delete your account?" onClose={close}>
          <p>This cannot be undone. Your password shows that it is you.</p>
          <Form
            action={action}
            onSubmit={({ present = '' }) =>
              action.run(async () => {
                await deleteAccount(present)
                go('feed')
                toast('Your account is deleted')
              })
            }
          >
            <Password label="Present password" name="present" autofocus />
            <div class="actions end">
              <button type="button" onClick={close}>
                Keep it
              </button>
              <button type="submit" class="danger" disabled={action.busy}>
                Delete it for ever
              </button>
            </div>
          </Form>
        </Dialog>
      )}
    </section>
  )
}
