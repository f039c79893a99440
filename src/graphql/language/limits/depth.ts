import { type DocumentNode, type FragmentDefinitionNode, Kind, type SelectionSetNode } from 'graphql'

/**
 * The depth of the deepest operation of a document: the number of fields that enclose a field. A fragment counts as if
 * it were written at its spread, but is evaluated only once; one within itself counts once, and is invalid anyway.
 * Introspection fields do not count. They are valid at the top level only, also inside fragments.
 */
export function depthOf(document: DocumentNode): number {
  const fragments = fragmentsOf(document)
  const known = new Map<string, number>()

  const ofFragment = (name: string): number => {
    const fragment = fragments.get(name)
    if (fragment !== undefined && !known.has(name)) {
      known.set(name, 0)
      known.set(name, ofSelections(fragment.selectionSet))
    }
    return known.get(name) ?? 0
  }

  const ofSelection = (selection: SelectionSetNode['selections'][number]): number => {
    if (selection.kind === Kind.FRAGMENT_SPREAD) return ofFragment(selection.name.value)
    if (selection.kind === Kind.INLINE_FRAGMENT) return ofSelections(selection.selectionSet)
    const { name, selectionSet } = selection
    return selectionSet === undefined || isIntrospection(name.value) ? 0 : 1 + ofSelections(selectionSet)
  }

  const ofSelections = ({ selections }: SelectionSetNode): number => Math.max(0, ...selections.map(ofSelection))

  const operations = document.definitions.filter(definition => definition.kind === Kind.OPERATION_DEFINITION)
  return Math.max(0, ...operations.map(({ selectionSet }) => ofSelections(selectionSet)))
}

export function fragmentsOf({ definitions }: DocumentNode): ReadonlyMap<string, FragmentDefinitionNode> {
  const fragments = definitions.filter(definition => definition.kind === Kind.FRAGMENT_DEFINITION)
  return new Map(fragments.map(fragment => [fragment.name.value, fragment]))
}

export function isIntrospection(name: string): boolean {
  return name === '__schema' || name === '__type'
}
