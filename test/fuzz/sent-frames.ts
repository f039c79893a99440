import { opcodes } from '../support/sockets.ts'

/** The code in the first close frame that a client sent in these bytes; 1005 if the frame has no code. */
export function closeCodeIn(bytes: Buffer): number | undefined {
  for (let at = 0; at + 2 <= bytes.length; ) {
    const opcode = bytes.readUInt8(at) & 0x0f
    const short = bytes.readUInt8(at + 1) & 0x7f
    const sizeBytes = short < 126 ? 0 : short === 126 ? 2 : 8
    const keyAt = at + 2 + sizeBytes
    if (keyAt + 4 > bytes.length) return undefined
    const size =
      short < 126 ? short : short === 126 ? bytes.readUInt16BE(at + 2) : Number(bytes.readBigUInt64BE(at + 2))
    if (opcode === opcodes.close) return size < 2 ? 1005 : unmasked(bytes, keyAt)
    at = keyAt + 4 + size
  }
  return undefined
}

function unmasked(bytes: Buffer, keyAt: number): number | undefined {
  return keyAt + 6 > bytes.length ? undefined : bytes.readUInt16BE(keyAt + 4) ^ bytes.readUInt16BE(keyAt)
}
