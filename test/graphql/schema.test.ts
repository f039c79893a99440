import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  buildClientSchema,
  buildSchema,
  type GraphQLField,
  type GraphQLNamedType,
  getIntrospectionQuery,
  type IntrospectionQuery,
  isObjectType,
  isScalarType,
  isSpecifiedScalarType,
  lexicographicSortSchema,
  printSchema,
} from 'graphql'
import { entities } from '../../src/core/entities.ts'
import { startTestApp } from '../support/app.ts'
import { read } from '../support/graphql.ts'
import { ask } from '../support/http.ts'
import { assertRefusal } from '../support/refusal.ts'
import { userOptions } from './support/data.ts'

const file = readFileSync(join(import.meta.dirname, '..', '..', 'api', 'schema.graphql'), 'utf8')
const schema = buildSchema(file)
const types: readonly GraphQLNamedType[] = Object.values(schema.getTypeMap()).filter(
  type => !type.name.startsWith('__') && !(isScalarType(type) && isSpecifiedScalarType(type)),
)

/** The fields of a type as the specification writes them. */
function fieldsOf(name: string): readonly string[] {
  const type = schema.getType(name)
  return isObjectType(type) ? Object.values(type.getFields()).map(signatureOf).sort() : assert.fail(name)
}

function signatureOf({ name, args, type }: GraphQLField<unknown, unknown>): string {
  const parameters = args.map(argument => `${argument.name}: ${argument.type}`).join(', ')
  return `${name}${parameters && `(${parameters})`}: ${type}`
}

const page = 'limit: Int, offset: Int, after: ID'

const fields: Readonly<Record<string, readonly string[]>> = {
  User: [
    ...['avatar: String', 'createdAt: DateTime!', 'email: String!', 'id: ID!', 'name: String!'],
    `posts(${page}): [Post!]!`,
  ],
  Post: [
    ...['author: User!', 'commentCount: Int!', `comments(${page}): [Comment!]!`, 'content: String!', 'id: ID!'],
    ...['likes: Int!', 'publishedAt: DateTime', 'title: String!', 'updatedAt: DateTime!'],
  ],
  Comment: ['author: User!', 'createdAt: DateTime!', 'id: ID!', 'post: Post!', 'text: String!', 'updatedAt: DateTime!'],
  Query: [
    ...['me: User', 'post(id: ID!): Post'],
    `posts(${page}, publishedAfter: DateTime, publishedBefore: DateTime): [Post!]!`,
    ...['user(id: ID!): User', `users(${page}): [User!]!`],
  ],
  Mutation: [
    ...['addComment(postId: ID!, text: String!): Comment!', 'createPost(title: String!, content: String!): Post!'],
    ...['deleteComment(id: ID!): Boolean!', 'deletePost(id: ID!): Boolean!', 'likePost(id: ID!): Post!'],
    'updateComment(id: ID!, text: String!, ifUpdatedAt: DateTime): Comment!',
    'updatePost(id: ID!, title: String, content: String, ifUpdatedAt: DateTime): Post!',
  ],
  Subscription: [
    ...['commentAdded(postId: ID!): Comment!', 'commentDeleted(postId: ID!): ID!'],
    ...['commentUpdated(postId: ID!): Comment!', 'postAdded: Post!', 'postDeleted: ID!', 'postUpdated: Post!'],
  ],
}

test('R-GQL-4, R-GQL-5, R-GQL-6, R-GQL-7, R-GQL-8: every type and kind of operation has exactly the fields of the specification, and those that complete them', () => {
  for (const [type, expected] of Object.entries(fields)) assert.deepEqual(fieldsOf(type), expected.toSorted(), type)
  const roots = [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()]
  assert.deepEqual(roots.map(String), ['Query', 'Mutation', 'Subscription'])
})

test('R-GQL-10, R-GQL-12: DateTime is the only custom scalar, and String, Int, Boolean and ID are the built-in ones in use', () => {
  assert.deepEqual(types.map(({ name }) => name).sort(), [...Object.keys(fields), 'DateTime'].sort())
  assert.ok(isScalarType(schema.getType('DateTime')))
  const used = new Set(file.match(/\b(String|Int|Float|Boolean|ID)\b/g))
  assert.deepEqual([...used].sort(), ['Boolean', 'ID', 'Int', 'String'])
})

test('every type, field and argument has a description', () => {
  const fields = types.flatMap(type => (isObjectType(type) ? Object.values(type.getFields()) : []))
  const all = [...types, ...fields, ...fields.flatMap(({ args }) => args)]
  assert.deepEqual(all.filter(({ description }) => !description).map(String), [])
})

test('R-GQL-1: introspection at /graphql returns exactly the schema of the file, and no other path serves it', async () => {
  await using app = await startTestApp()
  const options = { descriptions: true, specifiedByUrl: true, schemaDescription: true, inputValueDeprecation: true }
  const introspected = buildClientSchema(await read<IntrospectionQuery>(app, getIntrospectionQuery(options)))
  const printed = (each: typeof schema) => printSchema(lexicographicSortSchema(each))
  assert.equal(printed(introspected), printed(schema))
  for (const path of ['/api/graphql', '/graphql/', '/graphiql', '/query']) {
    const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"query":"{ __typename }"}' }
    assertRefusal(await ask(app.url + path, init), 404)
  }
})

test('random users have values in every optional field of the schema', () => {
  const { fields } = entities.User
  const optional = Object.keys(fields).filter(name => fields[name]?.optional === true)
  assert.deepEqual(Object.keys(userOptions).sort(), optional.sort(), 'test/graphql/support/data.ts: userOptions')
})

test('the schema and the description of the entities agree', () => {
  const names = { id: 'ID', text: 'String', integer: 'Int', instant: 'DateTime' }
  for (const [name, { fields, relations }] of Object.entries(entities)) {
    const type = schema.getType(name)
    const offered = isObjectType(type) ? Object.values(type.getFields()).map(each => `${each.name}: ${each.type}`) : []
    const values = Object.entries(fields).map(
      ([field, { type, optional }]) => `${field}: ${names[type]}${optional ? '' : '!'}`,
    )
    const others = Object.entries(relations).map(
      ([field, { kind, to }]) => `${field}: ${kind === 'many' ? `[${to}!]` : to}!`,
    )
    assert.deepEqual(offered.sort(), [...values, ...others].sort())
  }
})
