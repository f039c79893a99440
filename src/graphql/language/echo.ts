/**
 * A message of graphql-js in which what the client sent is cut short: each name and value is told up to 100 characters,
 * the whole message up to 500. Values that it prints over several lines come in one.
 */
export function withShortEchoes(message: string): string {
  if (message.length <= longestEcho && !message.includes('\n')) return message
  const told = oneLine(message).replace(sent, (whole, marker: string = '') => {
    if (marker !== '') return marker + cut(whole.slice(marker.length), longestEcho)
    return `"${cut(whole.slice(1).replace(/"$/, ''), longestEcho)}"`
  })
  return cut(told, longestMessage)
}

/** What a client sent, as an error may repeat it. */
export function echo(text: string): string {
  return cut(oneLine(text), longestEcho)
}

const longestEcho = 100
const longestMessage = 500

/** Something in quotes, or everything that follows the words with which graphql-js introduces a value. */
const sent = /(represent [a-z0-9 -]{0,40}value: |[Ff]ound: |(?:found|Unexpected) [A-Za-z]{1,20} (?=")).*|"[^"]*"?/gs

/** The beginning, as much of it as can get into a message: a value may have a million characters. */
function oneLine(text: string): string {
  return beginning(text, 10 * longestMessage).replace(/\n\s*/g, ' ')
}

function cut(text: string, longest: number): string {
  return text.length <= longest ? text : `${beginning(text, longest)}…`
}

function beginning(text: string, length: number): string {
  return text.length <= length ? text : text.slice(0, length).replace(/[\ud800-\udbff]$/, '') // no half of a character
}
