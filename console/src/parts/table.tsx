import type { ComponentChildren } from 'preact'
import { Fragment } from 'preact'
import { Notice } from './notice.tsx'
import type { Paged } from './pages.tsx'

export interface Column<Item> {
  readonly title: string
  /** The title is only for screen readers. */
  readonly untitled?: boolean
  /** Numbers stand at the end of their column. */
  readonly end?: boolean
  /** On a phone, the title stands before the value. */
  readonly labelled?: boolean
  /** On a phone, the value stands beside the first one, or at the end. */
  readonly place?: 'corner' | 'last'
  readonly cell: (item: Item) => ComponentChildren
}

interface Props<Item> {
  readonly caption: string
  readonly columns: readonly Column<Item>[]
  readonly paged: Paged<Item>
  /** Shown instead of a table without rows. */
  readonly empty: ComponentChildren
  /** A row of its own below an item, or nothing. */
  readonly below?: (item: Item) => ComponentChildren
}

/** A list of the service: its state, its rows (cards on a phone), and the way to the next page. */
export function Listing<Item extends { readonly id: number }>(props: Props<Item>) {
  const { paged, empty } = props
  const { page, busy, problem } = paged
  return (
    <>
      <Notice problem={problem} onAgain={paged.again} />
      {page === undefined && problem === undefined && <Loading />}
      {page !== undefined && (
        // Rows that another filter or page is going to replace are pale.
        <div aria-busy={busy} class={problem === undefined ? 'listing' : 'listing outdated'}>
          {page.items.length === 0 ? empty : <Table {...props} items={page.items} />}
          <Pager paged={paged} page={page.trail.length} more={page.more} />
        </div>
      )}
    </>
  )
}

function Table<Item extends { readonly id: number }>(props: Props<Item> & { readonly items: readonly Item[] }) {
  const { caption, columns, items, below } = props
  return (
    <div class="card">
      <table class="table stack">
        <caption class="visually-hidden">{caption}</caption>
        <thead>
          <tr>
            {columns.map(({ title, untitled, end }) => (
              <th scope="col" key={title} class={end ? 'end' : ''}>
                {untitled ? <span class="visually-hidden">{title}</span> : title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {items.map(item => {
            const more = below?.(item)
            return (
              <Fragment key={item.id}>
                <tr class={more ? 'opened' : ''}>
                  {columns.map(({ title, end, labelled, place = '', cell }) => (
                    <td
                      key={title}
                      class={end ? `end number ${place}` : place}
                      data-label={labelled ? title : undefined}
                    >
                      {cell(item)}
                    </td>
                  ))}
                </tr>
                {more && (
                  <tr class="below">
                    <td colSpan={columns.length}>{more}</td>
                  </tr>
                )}
              </Fragment>
            )
          })}
        </tbody>
      </table>
    </div>
  )
}

interface PagerProps {
  readonly paged: Pick<Paged<unknown>, 'busy' | 'next' | 'previous'>
  readonly page: number
  readonly more: boolean
}

function Pager({ paged, page, more }: PagerProps) {
  if (page === 1 && !more) return null
  // A disabled button would lose the focus.
  const button = (name: string, possible: boolean, go: () => void) => (
    <button type="button" aria-disabled={!possible || paged.busy} onClick={() => possible && !paged.busy && go()}>
      {name}
    </button>
  )
  return (
    <nav class="pager" aria-label="Pages of the list">
      {button('Previous', page > 1, paged.previous)}
      <span class="muted" aria-live="polite">
        Page {page}
      </span>
      {button('Next', more, paged.next)}
    </nav>
  )
}

/** Appears only if an answer takes longer than people notice. */
export function Loading() {
  return (
    <p class="loading" role="status">
      Loading…
    </p>
  )
}
