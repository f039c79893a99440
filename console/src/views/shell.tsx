import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { api } from '../client.ts'
import { Head } from '../parts/head.tsx'
import { Icon, type IconName } from '../parts/icon.tsx'
import { away, connection, online, pausedUntil } from '../state/connection.ts'
import { announcement, toasts } from '../state/messages.ts'
import { now } from '../state/now.ts'
import { href, route } from '../state/route.ts'
import { askToSignIn, question, resuming, who } from '../state/session.ts'
import { Account } from './account.tsx'
import { maySee, places, tabs } from './places.tsx'
import { SignInDialog } from './sign-in.tsx'

/** The page below the header: navigation, and the view of the current address. */
export function Shell() {
  const main = useRef<HTMLElement>(null)
  const { name, id } = route.value
  const address = href(name, id)
  const shown = useRef(address)
  useLayoutEffect(() => {
    if (shown.current === address) return
    shown.current = address
    // Screen readers continue there, unless the view has moved the focus to one of its fields.
    if (!main.current?.contains(document.activeElement)) main.current?.focus()
    scrollTo(0, history.state?.top ?? 0)
  }, [address])
  // A post belongs to the feed.
  const current = name === 'posts' ? 'feed' : name
  return (
    <>
      <div class="shell">
        <div class="side">
          <nav aria-label="Console">
            <ul class="tabs">
              {tabs
                .filter(({ audience }) => maySee(audience))
                .map(tab => (
                  <li key={tab.name} class={tab.name === 'account' ? 'wide-only' : undefined}>
                    <a href={href(tab.name)} aria-current={tab.name === current ? 'page' : undefined}>
                      <Icon name={tab.name} />
                      {tab.title}
                    </a>
                  </li>
                ))}
            </ul>
          </nav>
        </div>
        <main id="content" ref={main} class={places[name]?.narrow ? 'narrow' : ''} tabIndex={-1}>
          <Away />
          <Place key={address} />
        </main>
      </div>
      {question.value !== undefined && <SignInDialog reason={question.value.reason} onDone={question.value.answer} />}
      <div class="toasts" role="status">
        {toasts.value.map(({ id, text }) => (
          <p class="toast" key={id}>
            <Icon name="check" />
            {text}
          </p>
        ))}
      </div>
      <p class="visually-hidden" aria-live="polite">
        {announcement}
      </p>
    </>
  )
}

/** The view of the current address, if there is one and this person may see it. */
function Place() {
  const { name, id } = route.value
  const place = places[name]
  const View = id === undefined ? place?.view : place?.item
  if (place === undefined || View === undefined) return <Missing />
  if (maySee(place.audience)) return <View id={id ?? ''} />
  if (resuming.value) return <p class="muted">Reading…</p>
  return who.value === undefined ? <ForUsers /> : <ForAdmins />
}

function Missing() {
  return (
    <>
      <Head title="There is nothing here" text="No page of the console has this address. It may be misspelt." />
      <a href={href('feed')}>Go to the feed</a>
    </>
  )
}

function ForUsers() {
  return (
    <>
      <Head
        title="Sign in to see this"
        text="What is here belongs to somebody. Posts can be read without an account."
      />
      <button type="button" class="primary" onClick={() => askToSignIn('wanted')}>
        Sign in to go on
      </button>
    </>
  )
}

function ForAdmins() {
  return (
    <>
      <Head title="This is for admins" text="Your own orders and payments are under Orders and Payments." />
      <a href={href('feed')}>Go to the feed</a>
    </>
  )
}

const words = {
  idle: ['', ''],
  connecting: ['warn', 'Connecting'],
  live: ['good', 'Live'],
  waiting: ['bad', 'Not connected'],
} as const

/** What the header shows: whether events arrive, and who is signed in. */
export function Status() {
  const [tone, text] = online.value ? words[connection.value.state] : (['bad', 'Offline'] as const)
  return (
    <>
      {text && (
        <p class="state">
          <span class={`dot ${tone}`} />
          <span>{text}</span>
        </p>
      )}
      <Account />
    </>
  )
}

/** A banner while no events arrive: why, and when they will again. */
function Away() {
  const state = connection.value
  const pause = Math.ceil((pausedUntil.value - now.value) / 1000)
  if (!online.value) {
    return <Banner title="You are offline" text="What you write is kept. The feed goes on where it stopped." />
  }
  if (state.state === 'live' || state.state === 'idle') return null
  if (pause > 0) {
    const count = `You can go on in ${pause} s.`
    return <Banner title="Too many requests" text="New posts and comments wait as well." count={count} icon="clock" />
  }
  if (!away.value) return null
  const seconds = state.state === 'waiting' ? Math.ceil((state.retryAt - now.value) / 1000) : 0
  return (
    <Banner
      title="The service cannot be reached"
      text="What you write is kept. The feed goes on where it stopped."
      count={seconds > 0 ? `Next attempt in ${seconds} s.` : 'Trying…'}
    >
      <button type="button" onClick={() => api.live.retryNow()}>
        Try now
      </button>
    </Banner>
  )
}

interface BannerProps {
  readonly title: string
  readonly text: string
  /** Changes every second, so that screen readers do not hear it. */
  readonly count?: string
  readonly icon?: IconName
  readonly children?: ComponentChildren
}

function Banner({ title, text, count, icon = 'offline', children }: BannerProps) {
  return (
    <div class="notice warn" role="status">
      <Icon name={icon} />
      <p>
        <strong>{title}</strong>
        {text} <span aria-hidden="true">{count}</span>
      </p>
      {children}
    </div>
  )
}
