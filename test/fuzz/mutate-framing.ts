import { bytesOf, type Header, type HttpRequest, type RawBytes } from './cases.ts'
import { mutateBytes } from './mutate-bytes.ts'
import type { Random } from './random.ts'

/** Keeps the parts of a request, but makes it ambiguous where it starts or ends. */
export function mutateFraming(request: HttpRequest, random: Random): HttpRequest | RawBytes {
  const { name, body } = request
  if (body !== undefined && random.chance(0.2)) return { ...request, framing: 'chunked' }
  return { kind: 'bytes', name, bytes: random.chance(0.4) ? mutateHead(request, random) : confuse(request, random) }
}

function mutateHead(request: HttpRequest, random: Random): Buffer {
  let bytes = bytesOf(request)
  for (let left = random.between(1, 4); left > 0; left--) bytes = mutateBytes(bytes, random)
  return bytes
}

function confuse(request: HttpRequest, random: Random): Buffer {
  const bytes = bytesOf(request)
  const text = bytes.toString('latin1')
  const written = (changed: string) => Buffer.from(changed, 'latin1')
  const length = request.body?.length ?? 0
  switch (random.below(9)) {
    case 0:
      return withHeader(request, ['Content-Length', random.pick(lengths(length))])
    case 1:
      return withHeader(request, ['Transfer-Encoding', random.pick(codings)])
    case 2:
      return Buffer.concat([bytes, bytes])
    case 3:
      return written(text.replaceAll('\r\n', random.pick(['\n', '\r', '\r\n ', '\r\r\n'])))
    case 4:
      return written(text.replace(/: /, random.pick([' : ', ':', ':\t', ': \r\n ', '\0: '])))
    case 5:
      return written(`${random.pick(['\r\n', '\n', ' ', '\0', '\r\n\r\n', '\x16\x03\x01'])}${text}`)
    case 6:
      return written(
        text.replace(
          'HTTP/1.1',
          random.pick(['HTTP/1.0', 'HTTP/2.0', 'HTTP/0.9', 'HTTP/1.10', 'HTTP/9.9', 'http/1.1', '']),
        ),
      )
    case 7:
      return Buffer.concat([headOf(request, ['Transfer-Encoding', 'chunked']), brokenChunks(request.body, random)])
    default:
      return bytes.subarray(0, random.below(bytes.length))
  }
}

function lengths(length: number): readonly string[] {
  return [
    ...[0, length - 1, length + 1, length + 100, 2 ** 31, 2 ** 53, 10 ** 25].map(String),
    `+${length}`,
    `0x${length}`,
    '-1',
    '',
    `${length}, ${length}`,
    `${length} `,
    '1e3',
  ]
}

const codings = [
  'chunked',
  'Chunked',
  'chunked, chunked',
  'gzip, chunked',
  'chunked, identity',
  'xchunked',
  'identity',
  '',
]

function withHeader(request: HttpRequest, header: Header): Buffer {
  return bytesOf({ ...request, headers: [...request.headers, header] })
}

function headOf(request: HttpRequest, header: Header): Buffer {
  return bytesOf({ ...request, headers: [...request.headers, header], body: undefined })
}

function brokenChunks(body: Buffer | undefined, random: Random): Buffer {
  const text = body?.toString('latin1') ?? ''
  const size = text.length.toString(16)
  const chunks = [
    `${size}\r\n${text}`,
    `${size}\r\n${text}\r\n0\r\nTrailer: x\r\n\r\n`,
    `${size};extension="${'x'.repeat(20_000)}"\r\n${text}\r\n0\r\n\r\n`,
    `fffffffffffffffff\r\n${text}\r\n0\r\n\r\n`,
    `-1\r\n${text}\r\n0\r\n\r\n`,
    `${size}\n${text}\n0\n\n`,
    `${size} \r\n${text}\r\n0\r\n\r\n`,
    `${size}\r\n${text}0\r\n\r\n`,
    `${[...text].map(character => `1\r\n${character}\r\n`).join('')}0\r\n\r\n`,
    `${size}\r\n${text}\r\n0\r\n${'X: y\r\n'.repeat(3000)}\r\n`,
  ]
  return Buffer.from(random.pick(chunks), 'latin1')
}
