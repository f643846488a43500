// @vitest-environment jsdom
import { render } from 'preact';
import { expect, it, vi } from 'vitest';

import { Part } from './part';

it('failed part is loaded again on request', async () => {
  vi.spyOn(console, 'error').mockReturnValue();
  const load = vi.fn<() => Promise<string>>();
  load.mockRejectedValueOnce(new Error('offline')).mockResolvedValueOnce('the part');
  render(<Part load={load}>{(part) => <b>{part}</b>}</Part>, document.body);
  await vi.waitFor(() => expect(document.body.textContent).toContain('Reload the page.'));
  document.querySelector('button')?.click();
  await vi.waitFor(() => expect(document.querySelector('b')?.textContent).toBe('the part'));
  expect(load).toHaveBeenCalledTimes(2);
});
