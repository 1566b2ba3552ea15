/** A file's text, from Vite. */
declare module '*?raw' {
  const text: string;
  export default text;
}
