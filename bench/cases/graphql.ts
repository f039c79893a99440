import type { Case } from '../core/model.ts'
import { apollo, duet, go, graphqlServers, mercurius, yoga } from '../core/names.ts'
import { graphql, shuffled } from '../core/requests.ts'
import { operations, refused } from '../queries.ts'
import { population } from './population.ts'

const ids = shuffled(population.posts)
/** Whole pages: each has as many posts after it as the largest page needs. */
const pages = ids.filter(id => id > 100)
const pagesOf = (query: string) => pages.map(after => graphql(query, { after: String(after) }))

/** Cases of the GraphQL interface. */
export function graphqlCases(): readonly Case[] {
  const { point, list, nested, wide, like } = operations
  const posts = ids.map(id => graphql(point.query, { id: String(id) }))
  const likes = ids.map(id => graphql(like.query, { id: String(id) }))
  const nestedPages = pagesOf(nested.query)
  const onePage = nestedPages.slice(0, 1)
  const lists = pagesOf(list.query)
  const widePages = pagesOf(wide.query)
  const refusals = [graphql(refused)]
  return [
    {
      name: 'graphql-point',
      title: 'GraphQL: one post with its author',
      connections: 64,
      contenders: graphqlServers,
      requests: () => posts,
    },
    {
      name: 'graphql-list',
      title: 'GraphQL: a list of 20 posts',
      connections: 64,
      contenders: graphqlServers,
      requests: () => lists,
    },
    {
      name: 'nested',
      title: 'GraphQL: ten posts with authors and comments, distinct pages',
      connections: 64,
      contenders: graphqlServers,
      requests: () => nestedPages,
    },
    {
      name: 'nested-shared',
      title: 'GraphQL: ten posts with authors and comments, all clients read the same page',
      connections: 64,
      contenders: graphqlServers,
      requests: () => onePage,
      warmedBy: 'nested',
      note: 'Apart from the others: only here Duet reads once for all who ask at the same moment. No answer is kept longer than that.',
    },
    {
      name: 'wide',
      title: 'GraphQL: the most that one operation may cost: 90 posts with authors',
      connections: 64,
      contenders: graphqlServers,
      requests: () => widePages,
    },
    {
      name: 'like',
      title: 'GraphQL: a mutation (like), durably',
      connections: 64,
      contenders: graphqlServers,
      requests: () => likes,
      essence: (status, body) => ({ status, body: JSON.parse(body.replace(/"likes":\d+/, '"likes":0')) }),
    },
    {
      name: 'refusal',
      title: 'GraphQL: an operation that is too deep is refused, each document new',
      connections: 64,
      contenders: [duet, apollo, yoga, mercurius, go],
      requests: () => refusals,
      essence: (_, body) => {
        const { data, errors } = JSON.parse(body)
        return { isRefused: data == null && errors.length > 0 }
      },
    },
    {
      name: 'nested-1',
      title: 'GraphQL: ten posts with authors and comments, 1 connection',
      connections: 1,
      contenders: graphqlServers,
      requests: () => nestedPages,
      warmedBy: 'nested',
    },
    {
      name: 'nested-1000',
      title: 'GraphQL: ten posts with authors and comments, 1,000 connections',
      connections: 1000,
      contenders: graphqlServers,
      requests: () => nestedPages,
      warmedBy: 'nested',
    },
  ]
}
