/** The text of a piece of a page. */
export function textOf(html: string): string {
  const named: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"' }
  return html
    .replaceAll(/<[^>]*>/g, '')
    .replaceAll(/&(?:#(x?)([\da-f]+)|(\w+));/gi, (_, hex, code, name) =>
      name === undefined ? String.fromCharCode(Number.parseInt(code, hex === '' ? 10 : 16)) : (named[name] ?? ''),
    )
}

/** The texts of all blocks of code. */
export function codeIn(html: string): readonly string[] {
  return Array.from(html.matchAll(/<pre[^>]*><code>(.*?)<\/code>/gs), ([, code = '']) => textOf(code))
}
