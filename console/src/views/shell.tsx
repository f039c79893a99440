import { useEffect, useRef } from 'preact/hooks'
import { api } from '../client.ts'
import { Empty } from '../parts/empty.tsx'
import { Head } from '../parts/head.tsx'
import { Icon } from '../parts/icon.tsx'
import { connection, online } from '../state/connection.ts'
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
  useEffect(() => {
    if (shown.current === address) return
    shown.current = address
    main.current?.focus() // screen readers continue there
    scrollTo(0, 0)
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
    <Empty icon="lock" title="Sign in to see this">
      <p>What is here belongs to somebody. Posts can be read without an account.</p>
      <button type="button" class="primary" onClick={() => askToSignIn('wanted')}>
        Sign in to go on
      </button>
    </Empty>
  )
}

function ForAdmins() {
  return (
    <Empty icon="lock" title="This is for admins">
      <p>Your own orders and payments are under Orders and Payments.</p>
      <a href={href('feed')}>Go to the feed</a>
    </Empty>
  )
}

const words = {
  idle: ['', 'Not connected'],
  connecting: ['warn', 'Connecting'],
  live: ['good', 'Live'],
  waiting: ['bad', 'Not connected'],
} as const

/** What the header shows: whether events arrive, and who is signed in. */
export function Status() {
  const [tone, text] = online.value ? words[connection.value.state] : (['bad', 'Offline'] as const)
  return (
    <>
      <p class="state">
        <span class={`dot ${tone}`} />
        <span>{text}</span>
      </p>
      <Account />
    </>
  )
}

/** A banner while the service is not reachable, with the time of the next attempt. */
function Away() {
  const state = connection.value
  if (online.value && state.state !== 'waiting') return null
  const seconds = state.state === 'waiting' ? Math.max(0, Math.ceil((state.retryAt - now.value) / 1000)) : 0
  return (
    <div class="notice warn" role="status">
      <Icon name="offline" />
      <p>
        <strong>{online.value ? 'The service cannot be reached' : 'You are offline'}</strong>
        What you write is kept. The feed goes on where it stopped.
        {online.value && <span aria-hidden="true">{seconds > 0 ? ` Next attempt in ${seconds} s.` : ' Trying…'}</span>}
      </p>
      <button type="button" onClick={() => api.live.retryNow()}>
        Try now
      </button>
    </div>
  )
}
