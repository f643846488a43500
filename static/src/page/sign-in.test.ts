// @vitest-environment jsdom
import { beforeEach, expect, it, vi } from 'vitest';

import '../testing/dialog';
import { setTranslator, trans } from '../lib/translation';
import { pseudoTranslator, textsOf, findUntranslated } from '../testing/pseudo-locale';
import { SignIn } from './sign-in';

const BOTH_METHODS = { name: null, scope: null, token: true, password: true };
const request = vi.fn<(path: string, init?: RequestInit) => Promise<Response>>();
const signedIn = vi.fn();

function respondWith(
  status: number,
  body: unknown = '',
  headers: Record<string, string> = {},
): void {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  request.mockResolvedValueOnce(new Response(status === 204 ? null : text, { status, headers }));
}

function findDialog(): HTMLDialogElement | null {
  return document.querySelector('dialog');
}

function findInput(name: string): HTMLInputElement {
  const labels = [...document.querySelectorAll('label')];
  const found = labels.find((label) => label.textContent === name)?.querySelector('input');
  if (found === null || found === undefined) {
    throw new Error(`no field ${name}`);
  }
  return found;
}

async function submit(): Promise<void> {
  document.querySelector('form')?.dispatchEvent(new SubmitEvent('submit', { cancelable: true }));
  await vi.waitFor(() => expect(request.mock.results).toHaveLength(request.mock.calls.length));
  await new Promise((resolve) => setTimeout(resolve));
}

function readErrorText(): string {
  return document.querySelector('[role="alert"]:not([hidden])')?.textContent ?? '';
}

async function showSignIn(ways: object = BOTH_METHODS): Promise<SignIn> {
  const signIn = new SignIn(request, signedIn);
  respondWith(401, ways);
  expect((await signIn.checkSession())?.title).toBe('Not signed in');
  return signIn;
}

beforeEach(() => {
  document.body.replaceChildren();
  localStorage.clear();
  vi.resetAllMocks();
});

it('unprotected or old server shows no sign-in form', async () => {
  const signIn = new SignIn(request, signedIn);
  for (const status of [200, 404]) {
    respondWith(status, { ...BOTH_METHODS, scope: 'run' });
    expect(await signIn.checkSession()).toBeNull();
  }
  expect([findDialog(), signIn.headActions()]).toEqual([null, []]);
});

it('token signs in and is not stored', async () => {
  const signIn = await showSignIn({ ...BOTH_METHODS, password: false });
  expect(document.activeElement).toBe(findInput('Token'));
  expect(document.querySelector('.page-sign-in-other')).toBeNull();
  const token = findInput('Token');
  token.value = ' 0123 ';
  respondWith(200, { ...BOTH_METHODS, name: 'token ana', scope: 'run' });
  await submit();
  const [path, init] = request.mock.calls.at(-1) ?? [];
  expect([path, init?.method, init?.body]).toEqual(['api/v1/session', 'POST', '{"token":"0123"}']);
  expect(init?.headers).toEqual({ 'X-Gpumon': 'run' });
  expect([findDialog(), signedIn.mock.calls.length, signIn.headActions().length]).toEqual([
    null,
    1,
    1,
  ]);
  expect(JSON.stringify(localStorage)).not.toContain('0123');
  expect(token.value).toBe('');
});

it('sign-in error shows reason or waiting time', async () => {
  await showSignIn();
  respondWith(401, 'this token or password is not valid');
  await submit();
  expect(readErrorText()).toContain('This token is not valid.');
  request.mockRejectedValueOnce(new Error('gone'));
  await submit();
  expect(readErrorText()).toContain('not responding');
  respondWith(403, 'requests from pages of another origin are refused');
  await submit();
  expect(readErrorText()).toContain('another origin');
  respondWith(429, 'too many', { 'retry-after': '7' });
  await submit();
  const button = document.querySelector<HTMLButtonElement>('[type="submit"]');
  expect([readErrorText(), button?.disabled]).toEqual([
    'Too many wrong attempts. Try again in 7 seconds.',
    true,
  ]);
  expect(signedIn).not.toHaveBeenCalled();
});

it('user and password sign in', async () => {
  await showSignIn();
  document.querySelector<HTMLElement>('.page-sign-in-other')?.click();
  await Promise.resolve();
  expect(document.activeElement).toBe(findInput('User'));
  expect([document.body.textContent.includes('Token'), findInput('Password').required]).toEqual([
    false,
    true,
  ]);
  findInput('User').value = 'ana';
  findInput('Password').value = ' secret ';
  respondWith(401, '');
  await submit();
  expect(readErrorText()).toBe('User or password is wrong.');
  expect(request.mock.calls.at(-1)?.[1]?.body).toBe('{"user":"ana","password":" secret "}');
});

it('form cannot be closed and returns after sign-out', async () => {
  const signIn = await showSignIn();
  const cancel = new Event('cancel', { cancelable: true });
  findDialog()?.dispatchEvent(cancel);
  expect(cancel.defaultPrevented).toBe(true);
  respondWith(200, { ...BOTH_METHODS, scope: 'read' });
  await submit();
  respondWith(204);
  respondWith(401, BOTH_METHODS);
  signIn.headActions()[0]?.onClick?.();
  await vi.waitFor(() => expect(findDialog()).not.toBeNull());
  expect(request.mock.calls.map(([, init]) => init?.method ?? 'GET')).toEqual([
    'GET',
    'POST',
    'DELETE',
    'GET',
  ]);
  expect(signIn.headActions()).toEqual([]);
});

it('sign-in form is completely translated', async () => {
  const before = trans;
  setTranslator(pseudoTranslator(trans));
  const data = ['gpumon', 'localhost'];
  const signIn = new SignIn(request, signedIn);
  respondWith(401, BOTH_METHODS);
  const diagnosis = await signIn.checkSession();
  const texts = textsOf(document.body);
  respondWith(401);
  await submit();
  texts.push(...textsOf(document.body));
  document.querySelector<HTMLElement>('.page-sign-in-other')?.click();
  respondWith(429, '', { 'retry-after': '7' });
  await submit();
  texts.push(...textsOf(document.body), diagnosis?.title ?? '', diagnosis?.message ?? '');
  expect(texts.length).toBeGreaterThan(15);
  expect(findUntranslated(texts, data)).toEqual([]);
  setTranslator(before);
});
