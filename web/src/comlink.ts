// In dist/ this file is comlink itself, so that the package runs without a bundler and imports nothing by bare name.
export * from 'comlink';
