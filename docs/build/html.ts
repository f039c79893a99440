/** A block of code. It can be reached by keyboard, so that it can be scrolled by keyboard. */
export function block(html: string): string {
  return `<pre tabindex="0"><code>${html}</code></pre>\n`
}

/** A table that scrolls if it is too wide. It can be reached by keyboard, too. */
export function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = rows.map(cells => `<tr>${cells.map(cell => `<td>${cell}</td>`).join('')}</tr>`)
  return `<div class="table" tabindex="0"><table>
<thead><tr>${heads.map(head => `<th scope="col">${head}</th>`).join('')}</tr></thead>
<tbody>
${lines.join('\n')}
</tbody>
</table></div>
`
}

/** The menu of a page: beside its text, and on a phone behind a button. Scripts are not needed to open it. */
export function menu(name: string, links: readonly string[]): string {
  return `<button class="open-menu" type="button" popovertarget="menu">${name}</button>
<nav id="menu" class="contents" popover aria-label="${name}">
${links.join('\n')}
</nav>`
}
