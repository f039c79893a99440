interface Props {
  readonly title: string
  readonly unit: string
  /** One value for each point in time, oldest first. */
  readonly values: readonly number[]
  readonly format: (value: number) => string
}

const height = 40
const leastPoints = 12

/** Unknown values are drawn as 0. */
function drawn(value: number): number {
  return Number.isNaN(value) ? 0 : value
}

/** The latest value in large digits, and a chart of the values before it. */
export function Chart({ title, unit, values, format }: Props) {
  const latest = values.at(-1)
  // The first points fill only a part of the width.
  const width = Math.max(values.length, leastPoints)
  const most = Math.max(...values.map(drawn), Number.MIN_VALUE)
  const points = values.map((value, index) => {
    const x = width - values.length + index + 1
    return `${x} ${(height - 3 - (drawn(value) / most) * (height - 12)).toFixed(2)}`
  })
  const first = points[0]?.split(' ')[0]
  const shown = latest === undefined || Number.isNaN(latest) ? '–' : format(latest)
  return (
    <figure class="card chart">
      <figcaption>{title}</figcaption>
      <p class="value">
        {shown} <small>{unit}</small>
      </p>
      <svg
        viewBox={`1 0 ${width - 1} ${height}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${title}: now ${shown} ${unit}, at most ${format(values.length > 0 ? most : 0)} in the last minutes`}
      >
        {points.length > 1 && (
          <>
            <path class="area" d={`M${points.join('L')}L${width} ${height}L${first} ${height}Z`} />
            <path class="curve" d={`M${points.join('L')}`} />
          </>
        )}
      </svg>
    </figure>
  )
}
