import { type DocumentNode, Kind, type SelectionSetNode } from 'graphql'

/**
 * How deep the deepest operation of a document nests: the number of fields that enclose a field. Fragments count as if
 * they stood where they are spread; each is looked at once, however often that is. Introspection is exempt, as a field at
 * the top, whatever fragment it stands in. Nothing, when fragments go round in a circle.
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
  // A circle that no operation leads to is one, too.
  for (const name of fragments.keys()) ofFragment(name, false)
  return circular ? undefined : deepest
}

export function isIntrospection(name: string): boolean {
  return name === '__schema' || name === '__type'
}
