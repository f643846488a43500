import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { TranslationBundle } from '@jupyterlab/translation';

import type { LabNotebooks } from './notebook/notebooks';
import type { Connection } from './server/connection';

/** The objects that the views and the notebook features share. */
export interface ExtensionParts {
  app: JupyterFrontEnd;
  connection: Connection;
  notebooks: () => Promise<LabNotebooks>;
  trans: TranslationBundle;
}
