import { useSignal } from '@preact/signals'
import { copy } from '../parts/copy.ts'
import { Empty } from '../parts/empty.tsx'
import { Head } from '../parts/head.tsx'
import { Icon } from '../parts/icon.tsx'
import { Age } from '../parts/time.tsx'
import { clearRequests, curl, type LoggedRequest, requests } from '../state/requests.ts'

/** Every request of this page. */
export function Requests() {
  const withBackground = useSignal(false)
  const shown = requests.value.filter(({ background }) => withBackground.value || !background)
  return (
    <>
      <Head title="Requests" text="See what this page has asked, and copy any of it for your shell.">
        <button type="button" disabled={requests.value.length === 0} onClick={clearRequests}>
          Clear
        </button>
      </Head>
      <label class="check">
        <input
          type="checkbox"
          checked={withBackground.value}
          onChange={event => {
            withBackground.value = event.currentTarget.checked
          }}
        />
        Show health checks, too
      </label>
      {shown.length === 0 ? (
        <Empty icon="requests" title="No requests yet">
          <p>Look at another tab; its requests appear here.</p>
        </Empty>
      ) : (
        <div class="card">
          <table class="table stack log">
            <caption class="visually-hidden">Requests, newest first</caption>
            <thead>
              <tr>
                <th scope="col">At</th>
                <th scope="col">Request</th>
                <th scope="col">Status</th>
                <th scope="col" class="end">
                  Time
                </th>
                <th scope="col" class="end">
                  Rate limit
                </th>
                <th scope="col">
                  <span class="visually-hidden">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {shown.map(request => (
                <Row key={request.id} request={request} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  )
}

function Row({ request }: { readonly request: LoggedRequest }) {
  const { method, path, status, durationMs, rateLimit, startedAt, attempt, replayed } = request
  return (
    <tr>
      <td class="muted">
        <Age of={startedAt} />
      </td>
      <td class="request">
        <span class="method">{method}</span>
        <span class="path mono" title={`Request id ${request.requestId ?? 'unknown'}`}>
          {path}
        </span>{' '}
        {operationOf(request)}
        {attempt > 1 && <span class="badge">attempt {attempt}</span>}{' '}
        {replayed && <span class="badge accent">replay</span>}
      </td>
      <td>
        <span class={`badge ${toneOf(status)}`}>{status ?? 'no answer'}</span>
      </td>
      <td class="end number">{durationMs < 10 ? durationMs.toFixed(1) : Math.round(durationMs)} ms</td>
      <td class="end number muted">{rateLimit === undefined ? 'no limit' : `${rateLimit.remaining} left`}</td>
      <td>
        <span class="actions end">
          <button
            type="button"
            class="quiet"
            aria-label={`Copy ${method} ${path} as curl`}
            onClick={() => copy(curl(request), 'Copied as curl')}
          >
            <Icon name="copy" /> curl
          </button>
        </span>
      </td>
    </tr>
  )
}

function toneOf(status: number | undefined): string {
  if (status === undefined || status >= 500) return 'bad'
  return status >= 400 ? 'warn' : 'good'
}

/** The name of a GraphQL operation, because all of them have the same path. */
function operationOf({ body }: LoggedRequest) {
  const name = /^\{"query":"(?:query|mutation) (\w+)/.exec(body ?? '')?.[1]
  return name && <span class="muted">{name}</span>
}
