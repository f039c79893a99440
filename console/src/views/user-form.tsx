import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { isDuetError, type User, type UserInput } from '../../../client/src/index.ts'
import { api } from '../client.ts'
import { type Action, useAction } from '../parts/action.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { Field } from '../parts/field.tsx'
import { Form } from '../parts/form.tsx'
import { FormDialog } from '../parts/leave.tsx'
import { Notice } from '../parts/notice.tsx'
import { toast } from '../state/messages.ts'
import { nameKnown } from '../state/names.ts'
import { ofThisVisit } from '../state/pages.ts'
import { userChanged } from '../state/session.ts'
import { Conflict } from './conflict.tsx'

interface Props {
  /** Absent for a new user. */
  readonly user?: User
  readonly email?: string
  readonly onClose: () => void
  /** Called with the user as it is stored now. */
  readonly onSaved: (user: User) => void
}

/** Creates a user, or changes one if nobody else has changed it meanwhile. */
export function UserForm({ user, email = '', onClose, onSaved }: Props) {
  /** The user when the form was opened. */
  const base = useSignal<User | undefined>(undefined)
  const conflict = useSignal<{ readonly mine: UserInput; readonly theirs: User } | undefined>(undefined)
  const changes = (mine: UserInput) => (base.value === undefined ? {} : changesOf(base.value, mine))
  const reading = useAction()
  const saving = useAction()
  useEffect(() => {
    // The page may have been open for long, so the user is read once more.
    if (user !== undefined) {
      reading.run(async () => {
        base.value = await api.users.get(user.id)
      })
    }
  }, [user?.id])

  const done = (saved: User, text: string) => {
    userChanged(saved)
    nameKnown([saved])
    onClose()
    toast(text)
    onSaved(saved)
  }
  const save = (input: UserInput, on: User | undefined) =>
    saving.run(async () => {
      try {
        const saved = await ofThisVisit(
          on === undefined ? api.users.create(input) : api.users.update(on, changes(input)),
        )
        done(saved, on === undefined ? `${saved.name} is created` : `${saved.name} is saved`)
      } catch (error) {
        if (!isDuetError(error, 'conflict') || error.status !== 412 || on === undefined) throw error
        const theirs = await ofThisVisit(api.users.get(on.id))
        conflict.value = { mine: input, theirs }
      }
    })

  const title = user === undefined ? 'New user' : `Edit ${user.name}`
  if (conflict.value !== undefined) {
    const { mine, theirs } = conflict.value
    const keep = () => done(theirs, `${theirs.name} stays as stored`)
    return (
      <Dialog title="Somebody else was faster" onClose={keep} wide>
        <Notice problem={saving.problem} onAgain={saving.again} />
        <Conflict
          mine={mine}
          theirs={theirs}
          changed={Object.keys(changes(mine))}
          busy={saving.busy}
          onMine={() => save(mine, theirs)}
          onTheirs={keep}
        />
      </Dialog>
    )
  }
  return (
    <FormDialog title={title} onClose={onClose}>
      <Notice problem={reading.problem} onAgain={reading.again} />
      {(user === undefined || base.value !== undefined) && (
        <Fields user={base.value} email={email} saving={saving} onSave={input => save(input, base.value)} />
      )}
    </FormDialog>
  )
}

interface FieldsProps {
  readonly user: User | undefined
  readonly email: string
  readonly saving: Action
  readonly onSave: (input: UserInput) => void
}

function Fields({ user, email, saving, onSave }: FieldsProps) {
  return (
    <Form action={saving} onSubmit={texts => onSave(inputOf(texts))}>
      <Field label="Name" name="name" defaultValue={user?.name ?? ''} maxLength={320} required autofocus />
      <Field label="E-mail" name="email" type="email" defaultValue={user?.email ?? email} maxLength={320} required />
      <Field label="Age" name="age" type="number" min={0} max={150} defaultValue={user?.age ?? ''} />
      <Field
        label="Password"
        name="password"
        type="password"
        autocomplete="new-password"
        minLength={8}
        maxLength={128}
        hint={user === undefined ? 'Without one, this user cannot sign in.' : 'Leave it empty to keep the present one.'}
      />
      <div class="actions end">
        <button type="submit" class="primary" disabled={saving.busy}>
          {user === undefined ? 'Create' : 'Save'}
        </button>
      </div>
    </Form>
  )
}

function inputOf({ name = '', email = '', age = '', password = '' }: Readonly<Record<string, string>>): UserInput {
  return { name, email, age: age === '' ? null : Number(age), ...(password !== '' && { password }) }
}

/**
 * The fields that differ from the user when the form was opened. Only these are written, so that no other change is
 * lost.
 */
function changesOf(user: User, { name, email, age = null, password }: UserInput) {
  return {
    ...(name !== user.name && { name }),
    ...(email !== user.email && { email }),
    ...(age !== (user.age ?? null) && { age }),
    ...(password && { password }),
  }
}
