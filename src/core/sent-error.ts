import { AppError, type ErrorCode } from './errors.ts'

export type SentError = Readonly<ReturnType<typeof toSent>>

/** Keeps what is lost of an error when it is copied to another thread: its class, its code and its address. */
export function toSent(error: unknown) {
  const { name, message, stack, cause, code, at, syscall, hostname } = error as Error & Record<string, unknown>
  const reason = cause instanceof Error ? (cause.stack ?? cause.message) : String(cause)
  return { name: String(name), message: String(message ?? error), stack, cause: reason, code, at, syscall, hostname }
}

export function fromSent({ name, message, stack, cause, ...fields }: SentError): Error {
  if (name !== 'AppError')
    return Object.assign(new Error(message), { name, ...(stack !== undefined && { stack }) }, fields)
  const at = typeof fields.at === 'number' ? fields.at : undefined
  return new AppError(fields.code as ErrorCode, message, { cause: new Error(cause), at })
}
