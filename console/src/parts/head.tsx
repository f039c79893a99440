import type { ComponentChildren } from 'preact'
import { useLayoutEffect } from 'preact/hooks'

interface Props {
  readonly title: string
  /** What a person can do here. */
  readonly text: string
  /** Buttons next to the title. */
  readonly children?: ComponentChildren
}

/** The header of a view. Its title is also that of the page. */
export function Head({ title, text, children }: Props) {
  useTitle(title)
  return (
    <div class="head">
      <div>
        <h1>{title}</h1>
        <p>{text}</p>
      </div>
      {children}
    </div>
  )
}

/** The title of the page, for views with a head of their own. */
export function useTitle(title: string): void {
  useLayoutEffect(() => {
    document.title = `${title} · Duet console`
  }, [title])
}
