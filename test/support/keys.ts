import { generateKeySet } from '../../src/security/keys.ts'

/** A key set for apps that have no key file. */
export const tokenKeys = await generateKeySet()
