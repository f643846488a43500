/**
 * Copying to the clipboard, or saving to a file if the page may not use the clipboard, for example
 * over plain HTTP.
 */

import { downloadBlob } from '../lib/download';
import { trans } from '../lib/translation';

/**
 * Copies a text, or saves it as the file `file` with the media type `type`. Returns a message about
 * the result.
 */
export async function copyText(text: string, file: string, type: string): Promise<string> {
  try {
    await navigator.clipboard.writeText(text);
    return copiedMessage();
  } catch {
    return saveAsFile(new Blob([text], { type }), file);
  }
}

export async function copyPicture(picture: Promise<Blob>, file: string): Promise<string> {
  try {
    await navigator.clipboard.write([new ClipboardItem({ 'image/png': picture })]);
    return copiedMessage();
  } catch {
    return saveAsFile(await picture, file);
  }
}

function copiedMessage(): string {
  return trans.__('Copied to the clipboard');
}

function saveAsFile(blob: Blob, file: string): string {
  downloadBlob(blob, file);
  return trans.__('Saved as %1, because this page cannot use the clipboard', file);
}
