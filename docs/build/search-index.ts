type Rendered = Readonly<Record<'address' | 'title' | 'html', string>>

/**
 * What the search in the pages looks through, as JSON: `[[address, title, [[id, heading, text], …]], …]`. Each section has
 * a line, so that a change of one is no change of all.
 */
export function searchIndex(pages: readonly Rendered[]): string {
  const items = pages.map(({ address, title, html }) => {
    const sections = sectionsIn(html).map(section => JSON.stringify(section))
    return `[${JSON.stringify(address)},${JSON.stringify(title)},[\n${sections.join(',\n')}]]`
  })
  return `[${items.join(',\n')}]\n`
}

function sectionsIn(html: string): readonly (readonly [id: string, heading: string, text: string])[] {
  const sections = html.matchAll(/<h\d id="([^"]+)">(.*?)<\/h\d>(.*?)(?=<h\d id=|$)/gs)
  return Array.from(sections, ([, id = '', heading = '', text = '']) => [id, plain(heading), plain(text)])
}

/** The text of HTML. Words in different elements stay apart, parts of one word together. */
function plain(html: string): string {
  return html
    .replaceAll(/<a class="anchor".*?<\/a>|<\/?(?:a|b|code|em|span|strong)\b[^>]*>/g, '')
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/&(?:#(\d+)|#x([\da-f]+)|(\w+));/g, (_, decimal, hex, name) =>
      name === undefined ? String.fromCharCode(decimal ?? Number.parseInt(hex, 16)) : (named[name] ?? ''),
    )
    .replaceAll(/\s+/g, ' ')
    .trim()
}

const named: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"' }
