/** A round avatar with initials, in one of a few colours. Avatar images of other hosts are not loaded. */
export function Face({ name }: { readonly name: string }) {
  const words = name.trim().split(/\s+/)
  const initials = [words[0], words.length > 1 ? words.at(-1) : ''].map(word => [...(word ?? '')][0] ?? '').join('')
  let sum = 0
  for (const character of name) sum += character.codePointAt(0) ?? 0
  return (
    <span class={`face tint-${sum % 6}`} aria-hidden="true">
      {initials.toUpperCase()}
    </span>
  )
}

export function RoleBadge({ role }: { readonly role: string }) {
  return <span class={`badge ${role === 'admin' ? 'accent' : ''}`}>{role}</span>
}
