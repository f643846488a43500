// @vitest-environment jsdom
import { beforeEach, expect, it, vi } from 'vitest';

import '../testing/dialog';
import { setTranslator, trans } from '../lib/translation';
import { pseudoTranslator, textsOf, untranslated } from '../testing/pseudo-locale';
import { SignIn } from './sign-in';

const BOTH = { name: null, scope: null, token: true, password: true };
const request = vi.fn<(path: string, init?: RequestInit) => Promise<Response>>();
const signedIn = vi.fn();

function answer(status: number, body: unknown = '', headers: Record<string, string> = {}): void {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  request.mockResolvedValueOnce(new Response(status === 204 ? null : text, { status, headers }));
}

function dialog(): HTMLDialogElement | null {
  return document.querySelector('dialog');
}

function input(name: string): HTMLInputElement {
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

function error(): string {
  return document.querySelector('[role="alert"]:not([hidden])')?.textContent ?? '';
}

async function shown(ways: object = BOTH): Promise<SignIn> {
  const signIn = new SignIn(request, signedIn);
  answer(401, ways);
  expect((await signIn.check())?.title).toBe('Not signed in');
  return signIn;
}

beforeEach(() => {
  document.body.replaceChildren();
  localStorage.clear();
  vi.resetAllMocks();
});

it('open or old server shows no sign-in form', async () => {
  const signIn = new SignIn(request, signedIn);
  for (const status of [200, 404]) {
    answer(status, { ...BOTH, scope: 'run' });
    expect(await signIn.check()).toBeNull();
  }
  expect([dialog(), signIn.headActions()]).toEqual([null, []]);
});

it('token signs in and is not stored', async () => {
  const signIn = await shown({ ...BOTH, password: false });
  expect(document.activeElement).toBe(input('Token'));
  expect(document.querySelector('.page-sign-in-other')).toBeNull();
  const token = input('Token');
  token.value = ' 0123 ';
  answer(200, { ...BOTH, name: 'token ana', scope: 'run' });
  await submit();
  const [path, init] = request.mock.calls.at(-1) ?? [];
  expect([path, init?.method, init?.body]).toEqual(['api/v1/session', 'POST', '{"token":"0123"}']);
  expect(init?.headers).toEqual({ 'X-Gpumon': 'run' });
  expect([dialog(), signedIn.mock.calls.length, signIn.headActions().length]).toEqual([null, 1, 1]);
  expect(JSON.stringify(localStorage)).not.toContain('0123');
  expect(token.value).toBe('');
});

it('error shows the reason or the wait', async () => {
  await shown();
  answer(401, 'this token or password is not valid');
  await submit();
  expect(error()).toContain('This token is not valid.');
  request.mockRejectedValueOnce(new Error('gone'));
  await submit();
  expect(error()).toContain('not responding');
  answer(403, 'requests from pages of another origin are refused');
  await submit();
  expect(error()).toContain('another origin');
  answer(429, 'too many', { 'retry-after': '7' });
  await submit();
  const button = document.querySelector<HTMLButtonElement>('[type="submit"]');
  expect([error(), button?.disabled]).toEqual([
    'Too many wrong attempts. Try again in 7 seconds.',
    true,
  ]);
  expect(signedIn).not.toHaveBeenCalled();
});

it('user and password sign in', async () => {
  await shown();
  document.querySelector<HTMLElement>('.page-sign-in-other')?.click();
  await Promise.resolve();
  expect(document.activeElement).toBe(input('User'));
  expect([document.body.textContent.includes('Token'), input('Password').required]).toEqual([
    false,
    true,
  ]);
  input('User').value = 'ana';
  input('Password').value = ' secret ';
  answer(401, '');
  await submit();
  expect(error()).toBe('User or password is wrong.');
  expect(request.mock.calls.at(-1)?.[1]?.body).toBe('{"user":"ana","password":" secret "}');
});

it('form cannot be closed, returns after sign-out', async () => {
  const signIn = await shown();
  const cancel = new Event('cancel', { cancelable: true });
  dialog()?.dispatchEvent(cancel);
  expect(cancel.defaultPrevented).toBe(true);
  answer(200, { ...BOTH, scope: 'read' });
  await submit();
  answer(204);
  answer(401, BOTH);
  signIn.headActions()[0]?.onClick?.();
  await vi.waitFor(() => expect(dialog()).not.toBeNull());
  expect(request.mock.calls.map(([, init]) => init?.method ?? 'GET')).toEqual([
    'GET',
    'POST',
    'DELETE',
    'GET',
  ]);
  expect(signIn.headActions()).toEqual([]);
});

it('form has no English word in another language', async () => {
  const before = trans;
  setTranslator(pseudoTranslator(trans));
  const data = ['gpumon', 'localhost'];
  const signIn = new SignIn(request, signedIn);
  answer(401, BOTH);
  const diagnosis = await signIn.check();
  const texts = textsOf(document.body);
  answer(401);
  await submit();
  texts.push(...textsOf(document.body));
  document.querySelector<HTMLElement>('.page-sign-in-other')?.click();
  answer(429, '', { 'retry-after': '7' });
  await submit();
  texts.push(...textsOf(document.body), diagnosis?.title ?? '', diagnosis?.message ?? '');
  expect(texts.length).toBeGreaterThan(15);
  expect(untranslated(texts, data)).toEqual([]);
  setTranslator(before);
});
