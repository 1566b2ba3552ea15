// A conversation with all that the demo shows.
import { expect } from '@playwright/test';
import type { Page } from '@playwright/test';

/** A conversation with everything that an answer may have, as the page exports it. */
export const RICH = {
  version: 1,
  chats: [
    {
      ...{ id: 'rich', title: 'A table and some code', model: 'Another', time: 1_700_000_000_000 },
      data: {
        version: 1,
        messages: [
          { role: 'user', content: 'A table and <b>some</b> code' },
          {
            ...{ role: 'assistant', content: '', reasoning_content: 'I think of **tables**.' },
            tool_calls: [
              { id: 'abcdefghi', type: 'function', function: { name: 'calculator', arguments: { expression: '6*7' } } },
            ],
          },
          { role: 'tool', name: 'calculator', tool_call_id: 'abcdefghi', content: '42' },
          {
            role: 'assistant',
            content: [
              '# Title\n\n- one\n- two\n\n| a | b |\n|--:|---|\n| 1 | 2 |\n\n```js\nconst a = 1 < 2;\n```',
              '<img src="/none.png" onerror="document.title=1"> ![p](https://other.test/p.png)',
              '[bad](javascript:alert(1)) [good](https://other.test/)',
            ].join('\n\n'),
          },
        ],
      },
    },
  ],
};

export async function openRich(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'History' }).click();
  const file = { name: 'a.json', mimeType: 'application/json', buffer: Buffer.from(JSON.stringify(RICH)) };
  await page.getByLabel('Import').setInputFiles(file);
  await expect(page.locator('#history-text')).toHaveText('One conversation was imported.');
  await page.getByRole('button', { name: 'A table and some code', exact: true }).click();
}
