/**
 * The view's texts in the user's language: English, unless the embedding application sets a
 * translator.
 */

/**
 * The part of JupyterLab's translation bundles that is used: `%1` stands for the first of `args`.
 */
export interface Translator {
  __: (text: string, ...args: unknown[]) => string;
  /**
   * One text for one thing, another for several; `%1` stands for `n`, and `%2` for the first of
   * `args`.
   */
  _n: (one: string, several: string, n: number, ...args: unknown[]) => string;
}

/**
 * Every text for people goes through this when it is shown, since the language is not known while
 * modules are loaded. What stands in the call is a whole literal: that is how translators are given
 * the list of texts.
 */
export let trans: Translator = {
  __: filled,
  _n: (one, several, n, ...args) => filled(n === 1 ? one : several, n, ...args),
};
const english = trans;

/** Sets the translator of all texts from now on. */
export function setTranslator(translator: Translator): void {
  trans = translator;
}

/** What is made has the names that a file may have them by, whatever the language. */
export function inEnglish<T>(make: () => T): T {
  const translator = trans;
  trans = english;
  try {
    return make();
  } finally {
    trans = translator;
  }
}

/** Texts that belong together, made when one of them is first needed in a language. */
export function table<T>(make: () => T): () => T {
  let made: { by: Translator; texts: T } | null = null;
  return () => {
    if (made?.by !== trans) {
      made = { by: trans, texts: make() };
    }
    return made.texts;
  };
}

function filled(text: string, ...args: unknown[]): string {
  return text.replace(/%(\d+)/g, (_, place) => String(args[Number(place) - 1]));
}
