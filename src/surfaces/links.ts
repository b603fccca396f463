/** Where everything stands: the one list of paths, which routes, answers and evidence read. */
import type { Operation } from '../operation.ts';

export const PATHS = {
  home: '/',
  health: '/healthz',
  ready: '/readyz',
  models: '/api/v1/models',
  check: '/api/v1/check',
  verify: '/api/v1/verify-provenance',
  verifyAlias: '/verify-provenance',
  did: '/.well-known/did.json',
} as const;

export const operationPath = ({ id }: Pick<Operation, 'id'>): string => `/api/v1/${id}`;
export const samplePath = ({ id }: Pick<Operation, 'id'>): string => `/api/v1/samples/${id}`;
