import { defineConfig } from 'vitest/config';

export default defineConfig({ test: { include: ['tests/adapters/*.test.ts'], testTimeout: 60_000 } });
