/**
 * The views' texts in the user's language. They are in English unless the embedding application
 * sets a translator.
 */

/**
 * The part of JupyterLab's translation bundles that is used here. `%1` stands for the first of
 * `args`.
 */
export interface Translator {
  __: (text: string, ...args: unknown[]) => string;
  /**
   * Returns the singular or plural form for `n`. `%1` stands for `n`, and `%2` for the first of
   * `args`.
   */
  _n: (one: string, several: string, n: number, ...args: unknown[]) => string;
}

/**
 * The translator of all texts that users read. Code must call the translator when a text is shown,
 * because the language is unknown while modules are loaded. Each text must be a literal in the
 * call, because the list of texts for translators is extracted from the calls.
 */
export let trans: Translator = {
  __: fillPlaceholders,
  _n: (one, several, n, ...args) => fillPlaceholders(n === 1 ? one : several, n, ...args),
};
const english = trans;

/** Sets the translator of all texts. */
export function setTranslator(translator: Translator): void {
  trans = translator;
}

/** Calls `make` with English texts, for names that must be the same in every language. */
export function callInEnglish<T>(make: () => T): T {
  const translator = trans;
  trans = english;
  try {
    return make();
  } finally {
    trans = translator;
  }
}

/**
 * Returns a function that returns related texts. They are created when they are first needed in a
 * language.
 */
export function lazyTexts<T>(make: () => T): () => T {
  let made: { by: Translator; texts: T } | null = null;
  return () => {
    if (made?.by !== trans) {
      made = { by: trans, texts: make() };
    }
    return made.texts;
  };
}

function fillPlaceholders(text: string, ...args: unknown[]): string {
  return text.replace(/%(\d+)/g, (_, place) => String(args[Number(place) - 1]));
}
