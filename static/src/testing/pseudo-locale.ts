/**
 * A language that nobody speaks: English with an accent on each letter, so that a text shows that
 * was untranslated.
 */

import type { Translator } from '../lib/translation';

const ACCENT = '\u0301';
/** Units, names that are the same in every language, and months, whose names are the browser's. */
const SAME =
  '[GMkTP]i?B(?:/s)?|[kM]?[JW]|[kMG]Wh|MHz|m?s|min|[hdC]|GPU|PID|SM|JPEG|PCIe|NVLink|XGMI|' +
  'MIG|MPS|ECC|UUID|VBIOS|CUDA|' +
  'Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec';
/** Everything that is no word. A text with a digit is none. */
const NAMES = new RegExp(String.raw`[\w.:-]*\d[\w.:-]*|\b(?:${SAME})\b`, 'g');

/** The text in that language; what it has for values stays. */
export function pseudoLocalized(text: string): string {
  return text.replace(/%\d+|[a-z]/gi, (part) => (part.length > 1 ? part : part + ACCENT));
}

/** A translator into that language. */
export function pseudoTranslator({ __: one, _n: many }: Translator): Translator {
  return {
    __: (text, ...args) => one(pseudoLocalized(text), ...args),
    _n: (single, several, n, ...args) =>
      many(pseudoLocalized(single), pseudoLocalized(several), n, ...args),
  };
}

/**
 * All that somebody can read or hear of `root`, also what is hidden just now. It runs in a browser,
 * too.
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

/** Those of `texts` that are not in that language, nor `data`, which is the same in all. */
export function untranslated(texts: readonly string[], data: readonly string[]): string[] {
  const longestFirst = [...data].sort((a, b) => b.length - a.length);
  return texts.filter((text) => {
    const own = longestFirst.reduce((rest, one) => rest.replaceAll(one, ' '), text);
    return new RegExp(`[a-z](?!${ACCENT})`, 'i').test(own.replace(NAMES, ''));
  });
}
