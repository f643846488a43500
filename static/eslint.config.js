// One rule set for all packages: run from the root of the repository as `npm run check`.
import js from '@eslint/js';
import tseslint from 'typescript-eslint';

const TRANS = 'CallExpression[callee.object.name="trans"]';
const WHOLE = {
  selector: `${TRANS}:not([arguments.0.type="Literal"])`,
  message: 'Translators are given the texts that stand in a call as a literal.',
};
/** What looks like words for people: two of them, one with a capital letter, or one behind a value; classes and units do not. */
const WORDS = [
  'Literal[value=/^(?!(?:sudo )?gpumon).*[a-z],? [a-z]/i]',
  ':not(TSLiteralType, BinaryExpression) > Literal[value=/^[A-Z][a-z]+$/]',
  'TemplateElement[value.raw=/^(?!gpumon).*[a-z],? [a-z]/i]',
  'TemplateElement[value.raw=/^,? (?!min|gpumon)[a-z]{2,}/]',
]
  .map((text) => `${text}:not(${TRANS} > :first-child, ${TRANS}[callee.property.name="_n"] > :nth-child(2))`)
  .join();

export default tseslint.config(
  // The wire types are generated from Rust.
  { ignores: ['**/dist/**', 'static/src/wire/**', 'wheel/**'] },
  js.configs.recommended,
  {
    files: ['**/*.ts'],
    extends: [...tseslint.configs.strictTypeChecked, ...tseslint.configs.stylisticTypeChecked],
    languageOptions: {
      parserOptions: { projectService: true },
    },
    rules: {
      // Data must never become markup.
      'no-restricted-properties': [
        'error',
        { property: 'innerHTML' },
        { property: 'outerHTML' },
        { property: 'insertAdjacentHTML' },
      ],
      '@typescript-eslint/consistent-type-definitions': 'off',
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
    },
  },
  {
    // Texts for people go through `trans`, and translators are given those that stand whole in a call of it.
    files: ['static/src/{lib,model,view}/**/*.ts', 'labextension/src/**/*.ts'],
    rules: {
      'no-restricted-syntax': ['error', WHOLE],
    },
  },
  {
    files: ['static/src/{model,view}/**/*.ts'],
    // Tests quote texts, and what frameworks write is English.
    ignores: ['**/*.test.ts', 'static/src/model/oom-error.ts'],
    rules: {
      'no-restricted-syntax': [
        'error',
        WHOLE,
        { selector: WORDS, message: 'A text for people goes through trans.__ or trans._n.' },
      ],
    },
  },
  {
    files: ['tests/browser/**/*.ts'],
    // Vitest reads from its pattern which fixtures a function wants.
    rules: { 'no-empty-pattern': ['error', { allowObjectPatternsAsParameters: true }] },
  },
  {
    files: ['**/*.js', '**/*.mjs'],
    languageOptions: { globals: { process: 'readonly', console: 'readonly', URL: 'readonly' } },
  },
);
