import type { ComponentChildren } from 'preact'
import { Icon, type IconName } from './icon.tsx'

interface Props {
  readonly icon: IconName
  readonly title: string
  readonly children?: ComponentChildren
}

/** Shown instead of an empty list: the reason, and what to do next. */
export function Empty({ icon, title, children }: Props) {
  return (
    <div class="empty">
      <Icon name={icon} />
      <h2>{title}</h2>
      {children}
    </div>
  )
}
