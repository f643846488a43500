/**
 * Lint rules for texts that users read. All of them must go through `trans`, so that they can be
 * translated.
 */

/** Calls of `trans`, of `this.trans`, and of `lab`, which contains JupyterLab's own texts. */
const TRANS =
  'CallExpression:matches([callee.object.name=/^(trans|lab)$/],' +
  '[callee.object.property.name="trans"])';

/**
 * Selectors for literals that look like text for users: two words, one capitalized word, or a word
 * after a value. CSS classes and units do not match.
 */
const WORDS = [
  'Literal[value=/^(?!(?:sudo )?gpumon|pip ).*[a-z],? [a-z]/i]',
  ':not(TSLiteralType, BinaryExpression) > Literal[value=/^[A-Z][a-z]+$/]',
  'TemplateElement[value.raw=/^(?!gpumon).*[a-z],? [a-z]/i]',
  'TemplateElement[value.raw=/^,? (?!min|gpumon)[a-z]{2,}/]',
]
  .map(
    (text) =>
      `${text}:not(${TRANS} > :first-child, ${TRANS}[callee.property.name="_n"] > :nth-child(2))`,
  )
  .join();

/** Text between tags that does not go through `trans`. */
const IN_MARKUP = 'JSXText[value=/[a-z]{2,}/i]';

/** Returns a lint rule that reports `message` for all nodes that match `selector`. */
function forbid(selector, message) {
  return { create: (context) => ({ [selector]: (node) => context.report({ node, message }) }) };
}

export default {
  meta: { name: 'texts' },
  rules: {
    literal: forbid(
      `${TRANS}:not([arguments.0.type="Literal"])`,
      'Write the text as a literal in the call of trans: translators are given literals only.',
    ),
    translated: forbid(
      `${WORDS}, ${IN_MARKUP}`,
      'Pass a text for people through trans.__ or trans._n.',
    ),
  },
};
