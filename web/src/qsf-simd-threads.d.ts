export { default } from './engine-module.js';
