import { useEffect, useRef } from 'preact/hooks'
import { api } from '../client.ts'
import { Icon } from '../parts/icon.tsx'
import { connection, online } from '../state/connection.ts'
import { announcement, toasts } from '../state/messages.ts'
import { now } from '../state/now.ts'
import { type TabName, tab, tabs } from '../state/route.ts'
import { question } from '../state/session.ts'
import { Account } from './account.tsx'
import { Feed } from './feed.tsx'
import { Health } from './health.tsx'
import { Orders } from './orders.tsx'
import { Payments } from './payments.tsx'
import { Requests } from './requests.tsx'
import { SignIn } from './sign-in.tsx'
import { Users } from './users.tsx'

const views: Readonly<Record<TabName, () => unknown>> = {
  feed: Feed,
  users: Users,
  orders: Orders,
  payments: Payments,
  requests: Requests,
  health: Health,
}

/** The page below the header: navigation, and the view of the current tab. */
export function Shell() {
  const main = useRef<HTMLElement>(null)
  const shown = useRef(tab.value)
  const { name, title } = tabs.find(each => each.name === tab.value) ?? tabs[0]
  const View = views[name] as () => null
  useEffect(() => {
    document.title = `${title} · Duet console`
    if (shown.current === name) return
    shown.current = name
    main.current?.focus() // screen readers continue there
    scrollTo(0, 0)
  }, [name, title])
  return (
    <>
      <div class="shell">
        <div class="side">
          <nav aria-label="Console">
            <ul class="tabs">
              {tabs.map(each => (
                <li key={each.name}>
                  <a href={`#${each.name}`} aria-current={each.name === name ? 'page' : undefined}>
                    <Icon name={each.name} />
                    {each.title}
                  </a>
                </li>
              ))}
            </ul>
          </nav>
        </div>
        <main id="content" ref={main} class={name === 'feed' ? 'narrow' : ''} tabIndex={-1}>
          <Away />
          <View key={name} />
        </main>
      </div>
      {question.value !== undefined && <SignIn reason={question.value.reason} onDone={question.value.answer} />}
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
