import { type DocumentNode, Kind, type SelectionSetNode } from 'graphql'

/**
 * The depth of the deepest operation of a document: the number of fields that enclose a field. A fragment counts as if
 * it were written at its spread, but is evaluated only once; one within itself counts once, and is invalid anyway.
 * Introspection fields at the top level do not count, even inside fragments.
 */
export function depthOf({ definitions }: DocumentNode): number {
  const fragments = new Map<string, SelectionSetNode>()
  for (const definition of definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition.selectionSet)
  }
  const known = new Map<string, number>()

  const ofFragment = (name: string, atTop: boolean): number => {
    const id = atTop ? `${name} at the top` : name
    const selections = fragments.get(name)
    let depth = known.get(id) ?? 0
    if (selections !== undefined && !known.has(id)) {
      known.set(id, 0)
      depth = ofSelections(selections, atTop)
      known.set(id, depth)
    }
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

  const operations = definitions.filter(definition => definition.kind === Kind.OPERATION_DEFINITION)
  return operations.reduce((deepest, { selectionSet }) => Math.max(deepest, ofSelections(selectionSet, true)), 0)
}

export function isIntrospection(name: string): boolean {
  return name === '__schema' || name === '__type'
}
