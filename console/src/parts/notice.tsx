import { now } from '../state/now.ts'
import type { Problem } from '../state/problems.ts'
import { askToSignIn, who } from '../state/session.ts'
import { Icon, type IconName } from './icon.tsx'

interface Props {
  readonly problem: Problem | undefined
  readonly onAgain?: () => void
}

const icons: Readonly<Record<Problem['kind'], IconName>> = {
  offline: 'offline',
  unauthenticated: 'lock',
  forbidden: 'lock',
  'rate-limited': 'clock',
  other: 'warning',
}

/** An error in words for the user, and what to do about it. */
export function Notice({ problem, onAgain }: Props) {
  if (problem === undefined) return null
  const { kind, title, text, until = 0 } = problem
  const seconds = Math.max(0, Math.ceil((until - now.value) / 1000))
  const tone = kind === 'rate-limited' || kind === 'offline' || kind === 'unauthenticated' ? 'warn' : 'bad'
  return (
    <div class={`notice ${tone}`} role="alert">
      <Icon name={icons[kind]} />
      <p>
        <strong>{title}</strong>
        {text}
        {/* A screen reader hears the notice once, not every second. */}
        {kind === 'rate-limited' && (
          <span aria-live="off">{seconds > 0 ? `You can go on in ${seconds} s.` : 'You can go on now.'}</span>
        )}
      </p>
      {kind === 'unauthenticated' || (kind === 'forbidden' && who.value === undefined) ? (
        <button type="button" onClick={async () => (await askToSignIn('wanted')) && onAgain?.()}>
          Sign in
        </button>
      ) : (
        onAgain !== undefined &&
        problem.retry && (
          <button type="button" disabled={seconds > 0} onClick={onAgain}>
            Try again
          </button>
        )
      )}
    </div>
  )
}
