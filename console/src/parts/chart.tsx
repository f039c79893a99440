interface Props {
  readonly title: string
  readonly unit: string
  /** One value for each point in time, oldest first. */
  readonly values: readonly number[]
  /** How many points the whole width has. */
  readonly width: number
  readonly format: (value: number) => string
}

const height = 40

/** The latest value in large figures, and how it got there. */
export function Chart({ title, unit, values, width, format }: Props) {
  const latest = values.at(-1)
  const most = Math.max(...values, Number.MIN_VALUE)
  const points = values.map((value, index) => {
    const x = width - values.length + index + 1
    return `${x} ${(height - 3 - (value / most) * (height - 6)).toFixed(2)}`
  })
  const first = points[0]?.split(' ')[0]
  const shown = latest === undefined ? '–' : format(latest)
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
