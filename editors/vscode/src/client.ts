// The client of `torchlint server`: which documents it is about, and the settings that the server gets.

import * as vscode from "vscode";
import {
  DidChangeConfigurationNotification,
  LanguageClient,
  type LanguageClientOptions,
} from "vscode-languageclient/node";
import type { Program } from "./program";

const SECTION = "torchlint";
// The settings that are the server's, by its own names. It refuses others.
const PREFERENCES = [
  "configuration",
  "select",
  "extendSelect",
  "ignore",
  "impact",
  "advice",
  "fixAll",
  "lint",
] as const;

/** Python files, saved or not, and the Python cells of notebooks. */
export const PROGRAMS = ["file", "untitled", "vscode-notebook", "vscode-notebook-cell"].map((scheme) => ({
  scheme,
  language: "python",
}));

/** Files from which programs may read their settings. */
const CONFIGURATIONS = ["yaml", "json", "jsonc"].map((language) => ({ scheme: "file", language }));

/** What the server is told of the settings; those that nobody has set are left to config files. */
export function preferences(): Record<string, unknown> {
  const settings = vscode.workspace.getConfiguration(SECTION);
  const given = PREFERENCES.map((name) => [name, settings.get<unknown>(name)] as const);
  return Object.fromEntries(given.filter(([, value]) => value !== null && value !== undefined));
}

/** A client that starts the server of a program. */
export function createClient(program: Program, log: vscode.LogOutputChannel): LanguageClient {
  const options: LanguageClientOptions = {
    documentSelector: [...PROGRAMS, ...CONFIGURATIONS],
    outputChannel: log,
    initializationOptions: preferences(),
    middleware: {
      workspace: {
        // The section has settings of the extension, too.
        configuration: (params, token, next) =>
          params.items.length === 1 && params.items[0]?.section === SECTION
            ? [preferences()]
            : next(params, token),
      },
    },
  };
  return new LanguageClient(SECTION, SECTION, { command: program.path, args: ["server"] }, options);
}

/** Tells the server the settings as they are now. */
export async function sendPreferences(client: LanguageClient): Promise<void> {
  await client.sendNotification(DidChangeConfigurationNotification.type, {
    settings: { [SECTION]: preferences() },
  });
}
