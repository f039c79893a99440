import { element } from './dom.ts'

/** Screen readers say what is written here. */
const status = element('p', { className: 'unseen', role: 'status' })
document.body.append(status)

/** Puts a button to copy the code beside it. */
export function copyable(code: HTMLElement): void {
  const button = element('button', { type: 'button', className: 'copy' }, 'Copy')
  const box = element('div', { className: 'code' })
  code.replaceWith(box)
  box.append(code, button)
  button.addEventListener('click', async () => {
    const said = (await copy(commandsIn(code.textContent ?? ''))) ? 'Copied' : 'Not copied'
    status.textContent = button.textContent = said
    setTimeout(() => {
      button.textContent = 'Copy'
      status.textContent = ''
    }, 2000)
  })
}

/** What somebody types at a prompt, or all of the text if there is no prompt. */
function commandsIn(text: string): string {
  const commands = Array.from(text.matchAll(/^\$ ((?:.*\\\n)*.*)/gm), ([, command = '']) => command)
  return commands.length === 0 ? text : commands.join('\n')
}

async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    return copyInOldWay(text)
  }
}

/** Pages that did not come by https, or from this machine, have no clipboard. */
function copyInOldWay(value: string): boolean {
  const area = element('textarea', { value, className: 'unseen' })
  const focused = document.activeElement
  document.body.append(area)
  area.select()
  const isDone = document.execCommand('copy')
  area.remove()
  if (focused instanceof HTMLElement) focused.focus()
  return isDone
}
