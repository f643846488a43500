/** Asks for a token or a password where the server asks for one, once: it is kept as a cookie that no script can read. */

import { button, h, setShown, setText } from '../lib/dom';
import { Stored } from '../lib/stored';
import { plainText } from '../lib/text';
import { trans } from '../lib/translation';
import { OWN_HEADERS, type Request } from '../model/request';
import type { Diagnosis } from '../model/store';

const PATH = 'api/v1/session';

/** Whether somebody has signed in on this page, for what a cookie cannot tell. */
const SIGNED_IN = new Stored('gpumon-signed-in');

/** By what somebody can sign in. */
interface Ways {
  token: boolean;
  password: boolean;
}

export class SignIn {
  /** Ends the session; shown while there is one. */
  readonly signOut = button(
    { class: 'gpumon-chip page-link', 'data-testid': 'gpumon-sign-out' },
    () => void this.end(),
    trans.__('Sign out'),
  );
  private readonly token = field(trans.__('Token'), {
    type: 'password',
    autocomplete: 'current-password',
  });
  private readonly user = field(trans.__('User'), {
    type: 'text',
    autocomplete: 'username',
    autocapitalize: 'none',
  });
  private readonly password = field(trans.__('Password'), {
    type: 'password',
    autocomplete: 'current-password',
  });
  private readonly error = h('p', { class: 'page-sign-in-error', role: 'alert' });
  private readonly submit = h(
    'button',
    { type: 'submit', class: 'page-sign-in-submit' },
    trans.__('Sign in'),
  );
  private readonly other = button({ class: 'page-sign-in-other' }, () =>
    this.choose(!this.byToken),
  );
  private readonly form: HTMLFormElement;
  private readonly dialog: HTMLDialogElement;
  private ways: Ways = { token: true, password: false };
  private byToken = true;
  private wait: ReturnType<typeof setInterval> | undefined;

  constructor(
    private readonly request: Request,
    private readonly signedIn: () => void,
  ) {
    const title = h('h1', { id: 'page-sign-in-title' }, trans.__('Sign in to gpumon'));
    const where = h('p', { class: 'page-sign-in-where' }, location.host);
    const fields = [this.token, this.user, this.password];
    this.form = h(
      'form',
      { method: 'dialog' },
      title,
      where,
      ...fields,
      this.error,
      this.submit,
      this.other,
    );
    this.dialog = h(
      'dialog',
      { class: 'page-sign-in', 'aria-labelledby': title.id, 'data-testid': 'gpumon-sign-in' },
      this.form,
    );
    this.form.addEventListener('submit', (event) => {
      event.preventDefault();
      void this.send();
    });
    // There is nothing behind it.
    this.dialog.addEventListener('cancel', (event) => event.preventDefault());
    setShown(this.signOut, SIGNED_IN.get() !== null);
    setShown(this.error, false);
  }

  /** Shows the form where the server asks for it, and then says so. */
  async check(): Promise<Diagnosis | null> {
    const response = await this.request(PATH);
    if (response.status !== 401) {
      return null;
    }
    this.remember(false);
    this.ways = (await response.json()) as Ways;
    if (!this.dialog.open) {
      this.choose(this.ways.token);
      document.body.append(this.dialog);
      this.dialog.showModal();
      this.focus();
    }
    return {
      title: trans.__('Not signed in'),
      message: trans.__('This server asks for a token or a password.'),
    };
  }

  private choose(byToken: boolean): void {
    this.byToken = byToken;
    setShown(this.token, byToken);
    setShown(this.user, !byToken);
    setShown(this.password, !byToken);
    for (const [label, wanted] of [
      [this.token, byToken],
      [this.user, !byToken],
      [this.password, !byToken],
    ] as const) {
      inputOf(label).required = wanted;
    }
    setText(
      this.other,
      byToken ? trans.__('Use a password instead') : trans.__('Use a token instead'),
    );
    setShown(this.other, this.ways.token && this.ways.password);
    this.tell(null);
    if (this.dialog.open) {
      this.focus();
    }
  }

  private focus(): void {
    inputOf(this.byToken ? this.token : this.user).focus();
  }

  private async send(): Promise<void> {
    const [token, user, password] = [this.token, this.user, this.password].map(
      (label) => inputOf(label).value,
    );
    const body = JSON.stringify(this.byToken ? { token: token?.trim() } : { user, password });
    this.submit.disabled = true;
    this.tell(null);
    let response: Response | null = null;
    try {
      response = await this.request(PATH, { method: 'POST', headers: OWN_HEADERS, body });
    } catch {
      this.tell(trans.__('The server is not responding. Try again later.'));
    }
    this.submit.disabled = false;
    if (response === null) {
      return;
    }
    if (response.ok) {
      for (const label of [this.token, this.password]) {
        inputOf(label).value = '';
      }
      this.dialog.close();
      this.dialog.remove();
      this.remember(true);
      this.signedIn();
      return;
    }
    if (response.status === 429) {
      this.waitFor(Number(response.headers.get('retry-after')) || 60);
    } else if (response.status === 401) {
      this.tell(
        this.byToken
          ? trans.__('This token is not valid. Check that all of it is there, or ask for another.')
          : trans.__('User or password is wrong.'),
      );
    } else {
      this.tell(plainText((await response.text()).trim()) || `HTTP ${response.status}`);
    }
    inputOf(this.byToken ? this.token : this.password).select();
  }

  /** The server takes no more attempts for a while. */
  private waitFor(seconds: number): void {
    const end_ms = Date.now() + seconds * 1000;
    const update = (): void => {
      const left = Math.ceil((end_ms - Date.now()) / 1000);
      this.submit.disabled = left > 0;
      if (left > 0) {
        this.tell(
          trans._n(
            'Too many wrong attempts. Try again in %1 second.',
            'Too many wrong attempts. Try again in %1 seconds.',
            left,
          ),
        );
      } else {
        clearInterval(this.wait);
        this.tell(null);
      }
    };
    clearInterval(this.wait);
    this.wait = setInterval(update, 1000);
    update();
  }

  private tell(message: string | null): void {
    setText(this.error, message ?? '');
    setShown(this.error, message !== null);
  }

  private async end(): Promise<void> {
    await this.request(PATH, { method: 'DELETE', headers: OWN_HEADERS }).catch(() => null);
    await this.check().catch(() => null);
  }

  private remember(isSignedIn: boolean): void {
    SIGNED_IN.set(isSignedIn ? 'yes' : null);
    setShown(this.signOut, isSignedIn);
  }
}

/** A label with its input. */
function field(name: string, attributes: Record<string, string>): HTMLLabelElement {
  const input = h('input', { ...attributes, spellcheck: 'false', autocorrect: 'off' });
  return h('label', {}, name, input);
}

function inputOf(label: HTMLLabelElement): HTMLInputElement {
  const input = label.querySelector('input');
  if (input === null) {
    throw new Error('a field has an input');
  }
  return input;
}
