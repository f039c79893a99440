/** Line icons on a grid of 24 by 24. */
const shapes = {
  feed: 'M4 5h16M4 12h16M4 19h10',
  users:
    'M9 11a4 4 0 1 0 0-8 4 4 0 0 0 0 8ZM2.5 21c0-4 2.5-6.5 6.5-6.5s6.5 2.5 6.5 6.5M16 3.3a4 4 0 0 1 0 7.4M18 14.8c2.3.8 3.5 2.9 3.5 6.2',
  orders: 'M4 8 12 4l8 4v8l-8 4-8-4ZM4 8l8 4 8-4M12 12v8',
  payments: 'M3 6h18v12H3ZM3 10h18M7 14.5h4',
  requests: 'M7 4v16M7 20l-3.5-3.5M7 20l3.5-3.5M17 20V4M17 4l-3.5 3.5M17 4l3.5 3.5',
  health: 'M2.5 12H7l2.5-7 5 14 2.5-7h4.5',
  account: 'M12 12a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9ZM4 21c0-4 3-6.5 8-6.5s8 2.5 8 6.5',
  heart: 'M12 20S4 15 4 9.3C4 6.5 6 5 8 5c1.7 0 3.2 1 4 2.6C12.8 6 14.3 5 16 5c2 0 4 1.5 4 4.3C20 15 12 20 12 20Z',
  comment: 'M4 5h16v11H10l-5 4v-4H4Z',
  edit: 'M4 20h4L19 9l-4-4L4 16ZM13 7l4 4',
  trash: 'M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13M10 11v5M14 11v5',
  copy: 'M8 8h12v12H8ZM16 8V4H4v12h4',
  link: 'M10 14a4 4 0 0 0 5.7 0l3-3A4 4 0 0 0 13 5.3l-1 1M14 10a4 4 0 0 0-5.7 0l-3 3a4 4 0 0 0 5.7 5.7l1-1',
  down: 'M5 9l7 7 7-7',
  check: 'M4 12.5 10 18 20 6',
  close: 'M5 5l14 14M19 5 5 19',
  plus: 'M12 4v16M4 12h16',
  search: 'M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13ZM15.5 15.5 21 21',
  out: 'M14 4H5v16h9M10 12h11M17 8l4 4-4 4',
  clock: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18ZM12 7v5l3.5 2',
  lock: 'M5 11h14v9H5ZM8 11V8a4 4 0 0 1 8 0v3',
  offline: 'M4 4l16 16M4.5 12.5a11 11 0 0 1 4.5-2.7M15 9.8a11 11 0 0 1 4.5 2.7M8.5 16a5 5 0 0 1 7 0M12 19.5h.01',
  warning: 'M12 4 2.5 20h19ZM12 10v5M12 17.5h.01',
} as const

export type IconName = keyof typeof shapes

/** An icon next to a text with the same meaning, so it is hidden from screen readers. */
export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
      <path d={shapes[name]} />
    </svg>
  )
}
