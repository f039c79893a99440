/**
 * Shortens the parts of a graphql-js message that repeat the client's input: each name or value to 100 characters, the
 * whole message to 500. Values that graphql-js prints over several lines are put on one line.
 */
export function withShortEchoes(message: string): string {
  if (message.length <= longestEcho && !message.includes('\n')) return message
  const told = oneLine(message).replace(sent, (whole, marker: string = '') => {
    if (marker !== '') return marker + cut(whole.slice(marker.length), longestEcho)
    return `"${cut(whole.slice(1).replace(/"$/, ''), longestEcho)}"`
  })
  return cut(told, longestMessage)
}

/** The client's input, shortened for an error message. */
export function echo(text: string): string {
  return cut(oneLine(text), longestEcho)
}

const longestEcho = 100
const longestMessage = 500

/** A text in quotes, or everything after the words with which graphql-js introduces a value. */
const sent = /(represent [a-z0-9 -]{0,40}value: |[Ff]ound: |(?:found|Unexpected) [A-Za-z]{1,20} (?=")).*|"[^"]*"?/gs

/**
 * Joins the lines of the beginning of a text. A value may have a million characters, so only the part that can appear
 * in a message is processed.
 */
function oneLine(text: string): string {
  return beginning(text, 10 * longestMessage).replace(/\n\s*/g, ' ')
}

function cut(text: string, longest: number): string {
  return text.length <= longest ? text : `${beginning(text, longest)}…`
}

function beginning(text: string, length: number): string {
  // Does not split a surrogate pair.
  return text.length <= length ? text : text.slice(0, length).replace(/[\ud800-\udbff]$/, '')
}
