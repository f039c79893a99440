import { toast } from '../state/messages.ts'

/** Copies a text. Where the browser refuses that, as in a page that was not loaded over HTTPS, it shows the text. */
export async function copy(text: string, said: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text)
  } catch {
    return void prompt('Copy this:', text)
  }
  toast(said)
}
