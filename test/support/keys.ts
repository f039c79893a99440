import { generateKeySet } from '../../src/security/keys.ts'

/** A key set for apps that have no file to keep one in. */
export const tokenKeys = await generateKeySet()
