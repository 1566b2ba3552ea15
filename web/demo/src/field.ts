// Fields that are as high as their text.

/** Makes a field as high as its text, up to the limit of its style. Returns a function that fills it. */
export function growing(field: HTMLTextAreaElement): (text: string) => void {
  let width = 0;
  const grow = () => {
    width = field.clientWidth;
    field.style.height = 'auto';
    field.style.height = `${field.scrollHeight + 2}px`;
  };
  field.addEventListener('input', grow);
  // In the next frame: the heights of other elements change with it, and their observers have been called in this one.
  new ResizeObserver(() => {
    if (field.clientWidth !== width) requestAnimationFrame(grow);
  }).observe(field);
  return (text) => {
    field.value = text;
    grow();
  };
}
