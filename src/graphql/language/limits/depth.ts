import { type DocumentNode, Kind, type SelectionSetNode } from 'graphql'

/**
 * The depth of the deepest operation of a document: the number of fields that enclose a field. A fragment counts as if
 * it were written at its spread, but is evaluated only once. Introspection fields at the top level do not count, even
 * inside fragments. Returns undefined if fragments are circular.
 */
export function depthOf({ definitions }: DocumentNode): number | undefined {
  const fragments = new Map<string, SelectionSetNode>()
  for (const definition of definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition.selectionSet)
  }
  const known = new Map<string, number>()
  const underway = new Set<string>()
  let circular = false

  const ofFragment = (name: string, atTop: boolean): number => {
    const id = atTop ? `${name} at the top` : name
    const selections = fragments.get(name)
    if (underway.has(id)) circular = true
    if (selections === undefined || underway.has(id)) return 0
    underway.add(id)
    const depth = known.get(id) ?? ofSelections(selections, atTop)
    underway.delete(id)
    known.set(id, depth)
    return depth
  }

  const ofSelections = ({ selections }: SelectionSetNode, atTop: boolean): number => {
    let deepest = 0
    for (const selection of selections) {
      let depth = 0
      if (selection.kind === Kind.FRAGMENT_SPREAD) depth = ofFragment(selection.name.value, atTop)
      else if (selection.kind === Kind.INLINE_FRAGMENT) depth = ofSelections(selection.selectionSet, atTop)
      else if (selection.selectionSet !== undefined && !(atTop && isIntrospection(selection.name.value)))
        depth = 1 + ofSelections(selection.selectionSet, false)
      deepest = Math.max(deepest, depth)
    }
    return deepest
  }

  let deepest = 0
  for (const definition of definitions) {
    if (definition.kind === Kind.OPERATION_DEFINITION)
      deepest = Math.max(deepest, ofSelections(definition.selectionSet, true))
  }
  // Also find circular fragments that no operation uses.
  for (const name of fragments.keys()) ofFragment(name, false)
  return circular ? undefined : deepest
}

export function isIntrospection(name: string): boolean {
  return name === '__schema' || name === '__type'
}
