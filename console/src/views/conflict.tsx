import type { User, UserInput } from '../../../client/src/index.ts'

interface Props {
  readonly mine: UserInput
  readonly theirs: User
  /** The names of the fields that this user changed. */
  readonly changed: readonly string[]
  readonly busy: boolean
  readonly onMine: () => void
  readonly onTheirs: () => void
}

const rows = [
  ['Name', 'name'],
  ['E-mail', 'email'],
  ['Age', 'age'],
] as const

const words: Readonly<Record<string, string>> = { name: 'name', email: 'e-mail', age: 'age', password: 'password' }

/** Both versions of a user next to each other, for a choice. Nothing is saved yet. */
export function Conflict({ mine, theirs, changed, busy, onMine, onTheirs }: Props) {
  return (
    <>
      <p>
        While you were editing, somebody has changed this user. Nothing of yours is written yet. You changed:{' '}
        <b>{changed.map(name => words[name] ?? name).join(', ')}</b>. Only that is written if you save.
      </p>
      <table class="versions">
        <caption class="visually-hidden">Both versions</caption>
        <thead>
          <tr>
            <td />
            <th scope="col">Yours</th>
            <th scope="col">Stored now</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(([label, field]) => {
            const values = [mine[field] ?? '–', theirs[field] ?? '–']
            return (
              <tr key={field} class={values[0] === values[1] ? '' : 'differs'}>
                <th scope="row">{label}</th>
                <td>{values[0]}</td>
                <td>{values[1]}</td>
              </tr>
            )
          })}
        </tbody>
      </table>
      <div class="actions end">
        <button type="button" disabled={busy} onClick={onTheirs}>
          Keep what is stored
        </button>
        <button type="button" class="primary" disabled={busy} onClick={onMine}>
          Save my changes
        </button>
      </div>
    </>
  )
}
