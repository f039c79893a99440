import { useEffect } from 'preact/hooks'
import { Chart } from '../parts/chart.tsx'
import { Field, textsOf } from '../parts/field.tsx'
import { Head } from '../parts/head.tsx'
import { settings } from '../settings.ts'
import { metricsRefused, metricsToken, type Point, points, readiness, watchHealth } from '../state/health.ts'

const states = {
  unknown: ['', 'Looking…', 'The first answer is under way.'],
  ready: ['good', 'Ready', 'The service takes requests, and its database answers.'],
  'not ready': [
    'bad',
    'Not ready',
    'It answers, but cannot take requests now: its database is away, or it shuts down.',
  ],
  away: ['bad', 'No answer', 'The service cannot be reached.'],
} as const

const whole = (value: number) => String(Math.round(value))
const fine = (value: number) => (value >= 100 ? whole(value) : value.toFixed(1))

const charts: readonly { title: string; unit: string; field: keyof Point; format: (value: number) => string }[] = [
  { title: 'Requests', unit: 'a second', field: 'requestsPerSecond', format: fine },
  { title: 'Requests being answered', unit: 'now', field: 'inFlight', format: whole },
  { title: 'Open sockets', unit: 'now', field: 'sockets', format: whole },
  { title: 'Subscriptions', unit: 'now', field: 'subscriptions', format: whole },
  { title: 'From commit to subscriber', unit: 'ms', field: 'eventDelayMs', format: fine },
  { title: 'Delay of the event loop, p99', unit: 'ms', field: 'loopDelayMs', format: fine },
]

/** The health of the service, updated every two seconds. */
export function Health() {
  useEffect(watchHealth, [])
  const [tone, title, text] = states[readiness.value]
  return (
    <>
      <Head title="Health" text="Watch the instance that answers this page, every two seconds." />
      <div class="card ready" role="status">
        <span class={`dot ${tone}`} />
        <p>
          <b>{title}</b>
          <span class="muted">{text}</span>
        </p>
      </div>
      <Figures />
    </>
  )
}

function Figures() {
  if (settings.metrics === 'off') {
    return <p class="muted">The service shows no metrics: it has no METRICS_TOKEN.</p>
  }
  if (settings.metrics === 'token' && metricsToken.value === '') return <TokenForm />
  return (
    <div class="charts">
      {charts.map(({ title, unit, field, format }) => (
        <Chart key={field} title={title} unit={unit} format={format} values={points.value.map(point => point[field])} />
      ))}
    </div>
  )
}

function TokenForm() {
  return (
    <form
      class="card panel fields"
      onSubmit={event => {
        event.preventDefault()
        metricsToken.value = textsOf(event.currentTarget).token ?? ''
      }}
    >
      <Field
        label="Token of the metrics"
        name="token"
        type="password"
        autocomplete="off"
        required
        hint={
          metricsRefused.value
            ? 'That was not the right token.'
            : 'It is METRICS_TOKEN of the service, and is kept until you leave this page.'
        }
      />
      <div class="actions">
        <button type="submit" class="primary">
          Show the metrics
        </button>
      </div>
    </form>
  )
}
