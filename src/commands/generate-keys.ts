import { generateKeySet } from '../security/keys.ts'

/** `duet keys generate` */
export async function generateKeys(): Promise<number> {
  process.stdout.write(await generateKeySet())
  return 0
}
