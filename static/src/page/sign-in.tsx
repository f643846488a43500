import { render, type ComponentChild } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';

import { StoredValue } from '../lib/stored';
import { trans } from '../lib/translation';
import { makeRequestInit, readFailureReason, type Request } from '../model/request';
import type { Diagnosis } from '../model/store';
import type { HeadAction } from '../view/menu';

const PATH = 'api/v1/session';
/**
 * The time in seconds to wait after too many sign-in attempts, if the server does not state the
 * time.
 */
const WAIT_S = 60;

/** Whether a user has signed in on this page. The cookie itself is not readable by scripts. */
const SIGNED_IN = new StoredValue('gpumon-signed-in');

/** The sign-in methods that the server offers. */
interface Methods {
  token: boolean;
  password: boolean;
}

/** Asks for a token or a password if the server requires it. A cookie then keeps the session. */
export class SignIn {
  private readonly host = document.createElement('div');

  constructor(
    private readonly request: Request,
    private readonly onSignedIn: () => void,
  ) {}

  /** Returns the action to sign out, if a user has signed in. */
  headActions(): HeadAction[] {
    const end = async (): Promise<void> => {
      await this.request(PATH, makeRequestInit('DELETE')).catch(() => null);
      await this.checkSession().catch(() => null);
    };
    return SIGNED_IN.get() === null
      ? []
      : [
          {
            id: 'gpumon-sign-out',
            label: trans.__('Sign out'),
            inMenu: true,
            onClick: () => void end(),
          },
        ];
  }

  /**
   * Shows the form if the server requires the user to sign in. Returns the reason, or `null` if
   * signing in is not required.
   */
  async checkSession(): Promise<Diagnosis | null> {
    const response = await this.request(PATH);
    if (response.status !== 401) {
      return null;
    }
    SIGNED_IN.set(null);
    if (!this.host.isConnected) {
      const methods = (await response.json()) as Methods;
      this.host.className = 'gpumon';
      document.body.append(this.host);
      render(
        <Form methods={methods} request={this.request} onSignedIn={() => this.finishSignIn()} />,
        this.host,
      );
    }
    return {
      title: trans.__('Not signed in'),
      message: trans.__('This server requires a token or a password.'),
    };
  }

  private finishSignIn(): void {
    render(null, this.host);
    this.host.remove();
    SIGNED_IN.set('yes');
    this.onSignedIn();
  }
}

function Form({
  methods,
  request,
  onSignedIn,
}: {
  methods: Methods;
  request: Request;
  onSignedIn: () => void;
}): ComponentChild {
  const [byToken, setByToken] = useState(methods.token);
  const [error, setError] = useState('');
  const [isSending, setSending] = useState(false);
  const [wait_s, setWait] = useState(0);
  const dialog = useRef<HTMLDialogElement>(null);
  const secret = useRef<HTMLInputElement>(null);
  const user = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => {
    const opened = dialog.current;
    opened?.showModal();
    // Closing the dialog returns the focus to the view.
    return () => opened?.close();
  }, []);
  useLayoutEffect(() => (user.current ?? secret.current)?.focus(), [byToken]);
  const send = async (form: HTMLFormElement): Promise<void> => {
    const entered = secret.current?.value ?? '';
    const body = byToken
      ? { token: entered.trim() }
      : { user: user.current?.value, password: entered };
    setSending(true);
    setError('');
    try {
      const response = await request(PATH, makeRequestInit('POST', body));
      if (response.ok) {
        form.reset();
        onSignedIn();
      } else if (response.status === 429) {
        const seconds = Number(response.headers.get('retry-after')) || WAIT_S;
        countDown(Date.now() + seconds * 1000, setWait);
      } else {
        setError(await describeRejection(response, byToken));
        secret.current?.select();
      }
    } catch {
      setError(trans.__('The server is not responding. Try again later.'));
    }
    setSending(false);
  };
  const message =
    wait_s === 0
      ? error
      : trans._n(
          'Too many wrong attempts. Try again in %1 second.',
          'Too many wrong attempts. Try again in %1 seconds.',
          wait_s,
        );
  return (
    <dialog
      ref={dialog}
      class="page-sign-in"
      aria-labelledby="page-sign-in-title"
      data-testid="gpumon-sign-in"
      // The page behind the dialog is empty, so the dialog must stay open.
      onCancel={(event) => event.preventDefault()}
    >
      <form
        method="dialog"
        onSubmit={(event) => {
          event.preventDefault();
          void send(event.currentTarget);
        }}
      >
        <h1 id="page-sign-in-title">{trans.__('Sign in to gpumon')}</h1>
        <p class="page-sign-in-where">{location.host}</p>
        {!byToken && (
          <label>
            {trans.__('User')}
            <input
              ref={user}
              type="text"
              autocomplete="username"
              autocapitalize="none"
              autocorrect="off"
              spellcheck={false}
              required
            />
          </label>
        )}
        <label>
          {byToken ? trans.__('Token') : trans.__('Password')}
          <input
            key={String(byToken)}
            ref={secret}
            type="password"
            autocomplete="current-password"
            required
          />
        </label>
        <p class="page-sign-in-error" role="alert" hidden={message === ''}>
          {message}
        </p>
        <button type="submit" class="gpumon-primary" disabled={isSending || wait_s > 0}>
          {trans.__('Sign in')}
        </button>
        {methods.token && methods.password && (
          <button
            type="button"
            class="page-sign-in-other"
            onClick={() => {
              setByToken(!byToken);
              setError('');
            }}
          >
            {byToken ? trans.__('Use a password instead') : trans.__('Use a token instead')}
          </button>
        )}
      </form>
    </dialog>
  );
}

/** Returns why the server rejected the input. */
async function describeRejection(response: Response, byToken: boolean): Promise<string> {
  if (response.status !== 401) {
    return await readFailureReason(response);
  }
  return byToken
    ? trans.__('This token is not valid. Check that it is complete, or ask for another one.')
    : trans.__('User or password is wrong.');
}

/** Calls `show` with the remaining seconds: immediately, and then every second until `end_ms`. */
function countDown(end_ms: number, show: (left_s: number) => void): void {
  const left_ms = end_ms - Date.now();
  show(Math.max(0, Math.ceil(left_ms / 1000)));
  if (left_ms > 0) {
    setTimeout(() => countDown(end_ms, show), 1000);
  }
}
