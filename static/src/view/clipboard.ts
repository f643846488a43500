/**
 * Copying to the clipboard, or saving to a file if the page may not use the clipboard, for example
 * over plain HTTP.
 */

import { download } from '../lib/download';
import { trans } from '../lib/translation';

/** Copies a text. Returns a message about the result. `type` is the media type of the file. */
export async function copyText(text: string, file: string, type: string): Promise<string> {
  try {
    await navigator.clipboard.writeText(text);
    return copied();
  } catch {
    return save(new Blob([text], { type }), file);
  }
}

export async function copyPicture(picture: Promise<Blob>, file: string): Promise<string> {
  try {
    await navigator.clipboard.write([new ClipboardItem({ 'image/png': picture })]);
    return copied();
  } catch {
    return save(await picture, file);
  }
}

function copied(): string {
  return trans.__('Copied to the clipboard');
}

function save(blob: Blob, file: string): string {
  download(blob, file);
  return trans.__('Saved as %1, since this page cannot use the clipboard', file);
}
