import { useEffect } from 'preact/hooks'
import type { KeptPage, Page, ReadList } from '../state/pages.ts'
import { type Reading, useReading } from './action.tsx'

export interface Paged<Item> extends Pick<Reading, 'busy' | 'problem' | 'again'> {
  /** Absent until the first answer. While another page or filter is being read, the former page stays. */
  readonly page: Page<Item> | undefined
  next(): void
  previous(): void
  /** Shows another state of an item. */
  change(item: Item): void
  /** Shows a new item at the top of the first page, before the service is asked. */
  add(item: Item): void
}

interface Options<Item> {
  readonly kept: KeptPage<Item>
  /** A text that differs for every filter. */
  readonly filter: string
  readonly size: number
  readonly list: ReadList<Item>
}

/** Reads a list page by page, and begins with the page that was shown last. */
export function usePages<Item extends { readonly id: number }>(options: Options<Item>): Paged<Item> {
  const { kept, filter, size, list } = options
  const { busy, problem, run, again } = useReading()
  const go = (trail: Page<Item>['trail']): void => {
    const after = trail.at(-1)
    run(
      () => list({ limit: size, ...(after !== undefined && { after }) }).first(),
      ({ items, more }) => {
        // The last items of a page may have gone since.
        if (items.length === 0 && trail.length > 1) go(trail.slice(0, -1))
        else kept.value = { items, more, filter, trail }
      },
    )
  }
  useEffect(() => {
    const former = kept.peek()
    go(former?.filter === filter ? former.trail : [undefined])
  }, [filter])
  const page = kept.value
  /** If another filter could not be read, the page is still that of the former one. */
  const turnTo = (trail: Page<Item>['trail']) => go(page?.filter === filter ? trail : [undefined])
  return {
    page,
    busy,
    problem,
    again,
    next: () => page && turnTo([...page.trail, page.items.at(-1)?.id]),
    previous: () => page && turnTo(page.trail.slice(0, -1)),
    change: item => {
      const shown = kept.peek()
      if (shown !== undefined) {
        kept.value = { ...shown, items: shown.items.map(each => (each.id === item.id ? item : each)) }
      }
    },
    add: item => {
      const shown = kept.peek()
      const others = shown?.trail.length === 1 ? shown.items.filter(({ id }) => id !== item.id) : []
      kept.value = { more: false, ...shown, filter, trail: [undefined], items: [item, ...others].slice(0, size) }
      go([undefined])
    },
  }
}
