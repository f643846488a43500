/**
 * A pseudo-language for tests: English with an accent on each letter, so that untranslated texts
 * can be found.
 */

import type { Translator } from '../lib/translation';

const ACCENT = '\u0301';
/**
 * Words that are never translated: units, names that are the same in every language, and months,
 * which the browser names.
 */
const UNTRANSLATED_WORDS =
  '[GMkTP]i?B(?:/s)?|[kM]?[JW]|[kMG]Wh|MHz|m?s|min|[hdC]|GPU|PID|SM|JPEG|PCIe|NVLink|XGMI|' +
  'MIG|MPS|ECC|UUID|VBIOS|CUDA|' +
  'Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec';
/** The parts of a text that are not translatable words, such as words with a digit. */
const NAMES = new RegExp(String.raw`[\w.:-]*\d[\w.:-]*|\b(?:${UNTRANSLATED_WORDS})\b`, 'g');

/** Translates a text into the pseudo-language. Placeholders for values are kept. */
export function pseudoLocalize(text: string): string {
  return text.replace(/%\d+|[a-z]/gi, (part) => (part.length > 1 ? part : part + ACCENT));
}

/** Returns a translator into the pseudo-language. */
export function pseudoTranslator({ __: one, _n: many }: Translator): Translator {
  return {
    __: (text, ...args) => one(pseudoLocalize(text), ...args),
    _n: (single, several, n, ...args) =>
      many(pseudoLocalize(single), pseudoLocalize(several), n, ...args),
  };
}

/**
 * Returns all texts of `root` that users can read or hear, including hidden texts. The function
 * also runs in a browser.
 */
export function textsOf(root: Element): string[] {
  const texts: string[] = [];
  for (const element of [root, ...root.querySelectorAll('*')]) {
    for (const node of element.childNodes) {
      texts.push(node.nodeType === Node.TEXT_NODE ? (node.nodeValue ?? '') : '');
    }
    for (const name of ['title', 'aria-label', 'aria-description', 'placeholder', 'alt']) {
      texts.push(element.getAttribute(name) ?? '');
    }
  }
  return texts.filter((text) => text.trim() !== '');
}

/**
 * Returns the texts that are not in the pseudo-language. Occurrences of `data` are ignored, because
 * data are the same in all languages.
 */
export function findUntranslated(texts: readonly string[], data: readonly string[]): string[] {
  const longestFirst = [...data].sort((a, b) => b.length - a.length);
  return texts.filter((text) => {
    const own = longestFirst.reduce((rest, one) => rest.replaceAll(one, ' '), text);
    return new RegExp(`[a-z](?!${ACCENT})`, 'i').test(own.replace(NAMES, ''));
  });
}
