// Contrast as WCAG 2 counts it, of what a page really paints.
import type { Page } from '@playwright/test';

/** Relative luminance of an sRGB colour in 0 to 255. */
function luminance([r, g, b]: readonly number[]): number {
  const linear = (value = 0) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
}

function ratio(a: readonly number[], b: readonly number[]): number {
  const [light, dark] = [luminance(a), luminance(b)].sort((x, y) => y - x) as [number, number];
  return (light + 0.05) / (dark + 0.05);
}

const numbers = (colour: string): number[] =>
  (/\(([^)]*)\)/.exec(colour)?.[1] ?? '').split(',').map(Number).slice(0, 3);

/** Of an element's edge against what is behind the element, or of its two stripes. */
export async function contrast(page: Page, selector: string, what: 'border-top-color' | 'stripes'): Promise<number> {
  const { style, image, behind } = await page
    .locator(selector)
    .first()
    .evaluate((element, property) => {
      const computed = getComputedStyle(element);
      let around = element.parentElement;
      while (around && getComputedStyle(around).backgroundColor === 'rgba(0, 0, 0, 0)') around = around.parentElement;
      return {
        style: computed.getPropertyValue(property),
        image: computed.backgroundImage,
        behind: getComputedStyle(around ?? document.body).backgroundColor,
      };
    }, what);
  if (what === 'border-top-color') return ratio(numbers(style), numbers(behind));
  const [first = '', second = ''] = [...new Set(image.match(/rgb\([^)]*\)/g))];
  return ratio(numbers(first), numbers(second));
}
