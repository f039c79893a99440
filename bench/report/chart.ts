import type { Result } from '../core/model.ts'
import { spreadOf } from '../core/statistics.ts'
import { ratioOf } from '../goals.ts'

const width = 720
const labels = 170
const bar = 22
const gap = 8
const top = 44

/** Horizontal bars of the server's CPU, the database's after it, as an SVG that reads on light and dark pages. */
export function chartOf(result: Result): string {
  const bars = result.series.map(({ name, samples }) => ({
    name,
    server: spreadOf(samples.map(({ cpu }) => cpu)).median,
    database: spreadOf(samples.map(({ databaseCpu }) => databaseCpu)).median,
    ratio: ratioOf(result, name, 'whole')?.median ?? 1,
  }))
  const most = Math.max(...bars.map(({ server, database }) => server + database))
  const scale = (width - labels - 130) / most
  const hasDatabase = bars.some(({ database }) => database > 0)
  const height = top + bars.length * (bar + gap) + 12
  const rows = bars.map(({ name, server, database, ratio }, at) => {
    const y = top + at * (bar + gap)
    const end = labels + (server + database) * scale
    const colour = at === 0 ? '#0f766e' : '#94a3b8'
    const value = `${format(server + database)} µs${at === 0 ? '' : ` · ${ratio.toFixed(2)} ×`}`
    return [
      `<text x="${labels - 8}" y="${y + 15}" text-anchor="end">${escaped(name)}</text>`,
      `<rect x="${labels}" y="${y}" width="${fixed(server * scale)}" height="${bar}" fill="${colour}"/>`,
      `<rect x="${fixed(labels + server * scale)}" y="${y}" width="${fixed(database * scale)}" height="${bar}" fill="${colour}" fill-opacity="0.5"/>`,
      `<text x="${fixed(end + 6)}" y="${y + 15}">${value}</text>`,
    ].join('\n')
  })
  const what = hasDatabase ? "CPU of the server and, paler, of the database's processes" : 'CPU of the server'
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escaped(result.title)}" font-family="system-ui, sans-serif" font-size="13">
<rect width="${width}" height="${height}" fill="#ffffff"/>
<g fill="#0f172a">
<text x="12" y="18" font-weight="600">${escaped(result.title)}</text>
<text x="12" y="35" fill="#475569" font-size="12">${escaped(`${what} per ${result.unit ?? 'request'}; less is better`)}</text>
${rows.join('\n')}
</g>
</svg>
`
}

function format(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString('en') : value.toFixed(1)
}

function fixed(value: number): string {
  return value.toFixed(1)
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
