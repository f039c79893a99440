import type { ComponentChildren } from 'preact'

interface Props {
  /** What the user should know before the choice. */
  readonly children: ComponentChildren
  readonly rows: readonly (readonly [label: string, mine: string, theirs: string])[]
  readonly busy: boolean
  readonly onMine: () => void
  readonly onTheirs: () => void
}

/** Both versions next to each other, for a choice. Nothing is saved yet. */
export function Versions({ children, rows, busy, onMine, onTheirs }: Props) {
  return (
    <>
      <p>{children}</p>
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
          {rows.map(([label, mine, theirs]) => (
            <tr key={label} class={mine === theirs ? '' : 'differs'}>
              <th scope="row">{label}</th>
              <td>{mine}</td>
              <td>{theirs}</td>
            </tr>
          ))}
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
