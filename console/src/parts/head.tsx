import type { ComponentChildren } from 'preact'

interface Props {
  readonly title: string
  readonly text: string
  /** Buttons next to the title. */
  readonly children?: ComponentChildren
}

/** The header of a view. */
export function Head({ title, text, children }: Props) {
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
