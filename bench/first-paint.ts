import { startTestApp } from '../test/support/app.ts'
import { startBrowser } from '../test/support/browser.ts'

/**
 * How long a browser without a cache takes until it has painted something of a page, and until the page can be used. Prints
 * the medians in milliseconds. `npm --prefix bench run first-paint`
 */
const pages = [
  { path: '/console', usable: '.post' },
  { path: '/graphql', usable: '.graphiql-execute-button' },
]
const rounds = 7

const firstPaint = `new Promise(resolve => new PerformanceObserver(list => {
  for (const { name, startTime } of list.getEntries()) if (name === 'first-contentful-paint') resolve(startTime)
}).observe({ type: 'paint', buffered: true }))`

await using app = await startTestApp({ DATABASE_URL: 'sqlite::memory:', DEMO_DATA: 'true', RATE_LIMIT_MAX: '0' })
await using browser = await startBrowser()
const taken = new Map(pages.map(({ path }) => [path, { paint: [] as number[], use: [] as number[] }]))
for (let round = 0; round < rounds; round++) {
  for (const { path, usable } of pages) {
    const context = await browser.newContext()
    const page = await context.newPage()
    const began = performance.now()
    await page.goto(app.url + path)
    await page.locator(usable).first().waitFor()
    taken.get(path)?.use.push(performance.now() - began)
    taken.get(path)?.paint.push(await page.evaluate<number>(firstPaint))
    await context.close()
  }
}
for (const [path, { paint, use }] of taken) {
  console.log(`${path}: first paint ${median(paint)} ms, usable after ${median(use)} ms`)
}

function median(values: readonly number[]): number {
  return Math.round([...values].sort((one, other) => one - other)[values.length >> 1] ?? Number.NaN)
}
