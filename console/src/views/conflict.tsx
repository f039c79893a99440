import type { User, UserInput } from '../../../client/src/index.ts'
import { Versions } from '../parts/versions.tsx'

interface Props {
  readonly mine: UserInput
  readonly theirs: User
  /** The names of the fields that this user changed. */
  readonly changed: readonly string[]
  readonly busy: boolean
  readonly onMine: () => void
  readonly onTheirs: () => void
}

const labels = [
  ['Name', 'name'],
  ['E-mail', 'email'],
  ['Age', 'age'],
  ['Avatar', 'avatar'],
] as const

/** Both versions of a user. A field that is not in the form, or that neither version has, does not differ. */
export function Conflict({ mine, theirs, changed, ...rest }: Props) {
  const textOf = (value: string | number | null | undefined) => String(value ?? '–')
  const rows = labels.map(([label, field]) => {
    const stored = textOf(theirs[field])
    return [label, mine[field] === undefined ? stored : textOf(mine[field]), stored] as const
  })
  return (
    <Versions rows={rows.filter(([, ...texts]) => texts.join('') !== '––')} {...rest}>
      While you were editing, somebody has changed this user. Nothing of yours is written yet. You changed:{' '}
      <b>{changed.map(name => (name === 'email' ? 'e-mail' : name)).join(', ')}</b>. Only that is written if you save.
    </Versions>
  )
}
