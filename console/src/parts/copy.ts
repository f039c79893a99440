import { toast } from '../state/messages.ts'

/** Copies a text. A page that was not loaded over HTTPS may not, so there the browser shows it. */
export async function copy(text: string, said: string): Promise<void> {
  if (navigator.clipboard === undefined) return void prompt('Copy this:', text)
  await navigator.clipboard.writeText(text)
  toast(said)
}
