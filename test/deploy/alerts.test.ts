import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { load } from 'js-yaml'
import { programMissing } from '../support/daemon.ts'
import { temporaryFolder } from '../support/folder.ts'

const path = join(import.meta.dirname, '..', '..', 'deploy', 'prometheus-alerts.yaml')

type Rules = {
  readonly groups: readonly { readonly rules: readonly { readonly alert: string; readonly expr: string }[] }[]
}

/** A value for each minute of half an hour, by series, as `promtool` writes them: `0+2x30` is 0, 2, 4, … */
type Minutes = Readonly<Record<string, string>>

/** For each alert what an instance has that must raise it, and what another one has that must not, by little. */
const cases: Readonly<Record<string, { readonly raised: Minutes; readonly quiet: Minutes }>> = {
  DuetDown: valued('up{job="duet"}', '0x30', '1x29 0'),
  DuetErrors: {
    raised: { [requests('500', '/users')]: '0+3x30', [requests('200', '/users')]: '0+197x30' },
    quiet: {
      [requests('503', '/users')]: '0+2x30',
      [requests('200', '/users')]: '0+298x30',
      [requests('503', '/health/ready')]: '0+99x30',
    },
  },
  DuetNotReady: valued('duet_ready', '0x30', '0x28 1 0'),
  DuetSlow: {
    raised: durations('duet_http_request_seconds', 'route="/users"', 0.5, 98),
    quiet: {
      ...durations('duet_http_request_seconds', 'route="/users"', 0.5, 100),
      ...durations('duet_http_request_seconds', 'route="/metrics"', 0.5, 0),
    },
  },
  DuetWritesSlow: {
    raised: durations('duet_store_write_seconds', '', 0.5, 98),
    quiet: durations('duet_store_write_seconds', '', 0.5, 100),
  },
  DuetPoolWaiting: valued('duet_pool_waiting', '1x30', '9x27 0 9x2'),
  DuetStoreTroubles: valued('duet_store_troubles_total', '0x25 1 2 3 4 4', '0x25 1 2 3 3 3'),
  DuetMailsFail: {
    raised: { 'duet_mails_total{outcome="given up"}': '0x20 1x10' },
    quiet: { 'duet_mails_total{outcome="given up"}': '2x30', 'duet_mails_total{outcome="failed"}': '0x20 9x10' },
  },
  DuetRedisAway: valued('duet_redis_up', '0x30', '0x27 1 0x2'),
  DuetEventLoopBusy: valued('nodejs_eventloop_lag_p99_seconds{job="duet"}', '0.11x30', '0.09x30'),
  DuetEventsLate: {
    raised: durations('duet_events_lag_seconds', '', 2.5, 94),
    quiet: durations('duet_events_lag_seconds', '', 2.5, 96),
  },
  DuetEventsUndelivered: {
    raised: { duet_events_undelivered_age_seconds: '11x30' },
    quiet: {
      'duet_events_undelivered_age_seconds{instance="a"}': '9x30',
      'duet_events_undelivered_age_seconds{instance="b"}': '99x28 0 99',
    },
  },
  DuetBackupOld: {
    raised: { 'duet_backup_age_seconds{job="duet"}': '108060x30' },
    quiet: {
      'duet_backup_age_seconds{job="duet",instance="old"}': '900000x30',
      'duet_backup_age_seconds{job="duet",instance="new"}': '107940x30',
    },
  },
  DuetFilesRunningOut: {
    raised: { 'process_open_fds{job="duet"}': '81x30', 'process_max_fds{job="duet"}': '100x30' },
    quiet: { 'process_open_fds{job="duet"}': '79x30', 'process_max_fds{job="duet"}': '100x30' },
  },
  DuetMemory: valued('process_resident_memory_bytes{job="duet"}', '1.1e9x30', '0.9e9x30'),
  DuetRestarts: valued('process_start_time_seconds{job="duet"}', '1x25 2 3 4 4 4', '1x25 2 3 3 3 3'),
  DuetThreadRestarts: valued('duet_thread_restarts_total', '0x28 1 1', '3x30'),
  DuetClientsDoNotRead: {
    raised: { duet_connections_cut_total: '0+40x30', duet_sockets_closed_slow_total: '0+40x30' },
    quiet: {
      duet_connections_cut_total: '0+40x30',
      duet_sockets_closed_slow_total: '0x30',
      duet_unsent_bytes: '200000000x30',
    },
  },
  DuetConnectionsRefused: valued('duet_connections_refused_total', '0+70x30', '0+50x30'),
}

/** An alert that depends on the values of one series. */
function valued(series: string, raised: string, quiet: string) {
  return { raised: { [series]: raised }, quiet: { [series]: quiet } }
}

function requests(status: string, route: string): string {
  return `duet_http_request_seconds_count{status="${status}",route="${route}"}`
}

/** A hundred values a minute, of which so many are at most the bound. */
function durations(name: string, labels: string, bound: number, within: number): Minutes {
  const bucket = (le: string) => `${name}_bucket{le="${le}"${labels && `,${labels}`}}`
  const all = '0+100x30'
  return { [bucket(`${bound}`)]: `0+${within}x30`, [bucket(`${2 * bound}`)]: all, [bucket('+Inf')]: all }
}

/** A case of `promtool`: what the alerts are after half an hour in which all series have these values. */
function caseOf(kind: 'raised' | 'quiet') {
  const minutes = Object.values(cases).map(each => each[kind])
  const series = minutes.flatMap(each => Object.entries(each).map(([series, values]) => ({ series, values })))
  assert.equal(new Set(series.map(each => each.series)).size, series.length, 'a series has values of two alerts')
  const exp_samples = kind === 'raised' ? [{ labels: '{}', value: 1 }] : []
  const promql_expr_test = Object.keys(cases).map(alert => {
    const expr = `count(ALERTS{alertname="${alert}",alertstate="firing"})`
    return { expr, eval_time: '30m', exp_samples }
  })
  return { name: kind, interval: '1m', input_series: series, promql_expr_test }
}

test('deploy/prometheus-alerts.yaml raises each alert for an instance in trouble, and not for one that is almost in trouble', {
  skip: programMissing('promtool') ?? false,
}, () => {
  const { groups } = load(readFileSync(path, 'utf8')) as Rules
  const alerts = groups.flatMap(({ rules }) => rules.map(({ alert }) => alert))
  assert.deepEqual(Object.keys(cases).toSorted(), alerts.toSorted())
  // All series are in one case, so an alert could be raised by those of another one.
  for (const { alert, expr } of groups.flatMap(({ rules }) => rules)) {
    const own = Object.keys({ ...cases[alert]?.raised, ...cases[alert]?.quiet }).join()
    for (const [name] of expr.matchAll(/\b(?:duet|process|nodejs)_\w+/g))
      assert.ok(own.includes(name), `${alert}: ${name}`)
  }
  const tests = [caseOf('raised'), caseOf('quiet')]
  using folder = temporaryFolder()
  const file = join(folder.path, 'cases.yaml')
  writeFileSync(file, JSON.stringify({ rule_files: [path], evaluation_interval: '1m', tests }))
  execFileSync('promtool', ['check', 'rules', path])
  execFileSync('promtool', ['test', 'rules', file]) // its message has what failed
})
