import { randomUUID } from 'node:crypto'
import type { Clock, Randomness } from '../core/ports.ts'

export const systemClock: Clock = { now: Date.now }
export const systemRandomness: Randomness = { id: randomUUID }
