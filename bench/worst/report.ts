import type { Measured } from './measure.ts'
import type { Latencies } from './neighbours.ts'

/** Milliseconds; and how many times as long others may wait as they do without the load. */
const goals = { stall: 25, database: 100, p99: 2 } as const

const measures = {
  cpu: 'server CPU',
  stall: 'stall of the event loop',
  memory: 'memory',
  database: 'time in the database',
} as const

/** Prints the ten worst by each measure. */
export function printWorst(title: string, all: readonly Measured[]): void {
  for (const [measure, name] of Object.entries(measures) as [keyof typeof measures, string][]) {
    console.log(`\n${title}: the ten worst by ${name}`)
    console.log('  CPU ms thread ms  stall ms  memory MB  database ms  its CPU  cost  status, operation')
    for (const each of all.toSorted((a, b) => b[measure] - a[measure]).slice(0, 10)) {
      const { cpu, thread, stall, memory, database, databaseCpu, cost, status, name, text } = each
      const numbers = [
        fixed(cpu, 8),
        fixed(thread, 9),
        fixed(stall, 9),
        fixed(memory / 1024 / 1024, 10),
        fixed(database, 12),
        fixed(databaseCpu, 8),
      ].join(' ')
      console.log(`${numbers} ${String(cost ?? '-').padStart(5)}  ${status}, ${name}: ${short(text)}`)
    }
  }
}

export function printGoals(title: string, all: readonly Measured[]): void {
  for (const [measure, bound] of [
    ['stall', goals.stall],
    ['database', goals.database],
  ] as const) {
    const beyond = all.filter(each => each[measure] > bound).toSorted((a, b) => b[measure] - a[measure])
    const verdict = beyond.length === 0 ? 'goal met' : `goal missed by ${beyond.length} of ${all.length}`
    console.log(`${title}: no operation takes more than ${bound} ms by ${measures[measure]}: ${verdict}`)
    for (const { name, status, cpu, databaseCpu, thread, [measure]: ms } of beyond) {
      console.log(
        `    ${fixed(ms, 8)} ms (CPU ${cpu.toFixed(0)}, of it serving ${thread.toFixed(0)}, database's ${databaseCpu.toFixed(0)})  ${status}  ${name}`,
      )
    }
    for (const { name, text } of beyond.slice(0, 3)) console.log(`    ${name}: ${text}`)
  }
}

/** With those without the load, also whether others wait too long. */
export function printLatencies(title: string, { p50, p99, longest, failed }: Latencies, alone?: Latencies): void {
  const numbers = `p50 ${p50.toFixed(1)}, p99 ${p99.toFixed(1)}, longest ${longest.toFixed(0)} ms, ${failed} failed`
  const ratio = alone === undefined ? 1 : p99 / alone.p99
  const verdict = ratio <= goals.p99 && failed === 0 ? 'goal met' : 'goal missed'
  console.log(`${title}: ${numbers}; p99 ${ratio.toFixed(1)} times as long as without: ${verdict}`)
}

function fixed(number: number, width: number): string {
  return number.toFixed(1).padStart(width)
}

/** Of a long text the beginning and the end, and how long it is. */
function short(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ')
  return line.length <= 120 ? line : `${line.slice(0, 85)} … ${line.slice(-25)} (${text.length} characters)`
}
