// Plots docs/reference/benchmarks/*.json; `npm run bench:page` builds and serves it.
import { defineConfig } from 'vite';

export default defineConfig({ base: './', build: { target: 'es2022' } });
