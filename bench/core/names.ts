/** The names of contenders, as the report shows them. */
export const duet = 'Duet'
export const apollo = 'Apollo Server'
export const yoga = 'graphql-yoga'
export const mercurius = 'Mercurius'
export const postgraphile = 'PostGraphile'
export const express = 'Express'
export const fastify = 'Fastify'
export const hono = 'Hono'
export const go = 'Go'
export const bare = 'bare node:http'
export const bareLoop = 'bare loop'

export const restServers = [duet, express, fastify, hono, go, bare] as const
export const graphqlServers = [duet, apollo, yoga, mercurius, go, bare] as const
