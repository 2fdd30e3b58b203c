// The extension: starts the server, shows its state, and offers the commands.

import * as vscode from "vscode";
import { type LanguageClient, State } from "vscode-languageclient/node";
import { PROGRAMS, createClient, sendPreferences } from "./client";
import { fixAll } from "./fixes";
import { type Program, ask, findProgram, onInterpreterChange } from "./program";
import { registerPages, showRule } from "./rules";
import { verifyFile } from "./verify";

let client: LanguageClient | undefined;
// Restarts come one after another, whatever asks for them.
let restarting: Promise<void> = Promise.resolve();

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const log = vscode.window.createOutputChannel("torchlint", { log: true });
  const status = createStatus();
  const restart = (): Promise<void> => (restarting = restarting.then(() => start(status, log)));
  context.subscriptions.push(
    log,
    status,
    registerPages(),
    vscode.commands.registerCommand("torchlint.fixAll", fixAll),
    vscode.commands.registerCommand("torchlint.showRule", showRule),
    vscode.commands.registerCommand("torchlint.verify", () => verifyFile(log)),
    vscode.commands.registerCommand("torchlint.restart", restart),
    vscode.commands.registerCommand("torchlint.showLog", () => log.show()),
    vscode.workspace.onDidChangeConfiguration(async (event) => {
      if (["path", "interpreter"].some((name) => event.affectsConfiguration(`torchlint.${name}`))) {
        await restart();
      } else if (event.affectsConfiguration("torchlint") && client?.state === State.Running) {
        await sendPreferences(client);
      }
    }),
  );
  const listening = await onInterpreterChange(() => void restart());
  if (listening) {
    context.subscriptions.push(listening);
  }
  await restart();
}

export async function deactivate(): Promise<void> {
  await restarting;
  await stop();
}

async function start(status: vscode.LanguageStatusItem, log: vscode.LogOutputChannel): Promise<void> {
  await stop();
  const program = await findProgram(vscode.workspace.workspaceFolders?.[0]?.uri);
  log.info(`torchlint is ${program.path}, from ${program.origin}`);
  status.busy = true;
  try {
    const version = await ask(program, "--version");
    client = createClient(program, log);
    await client.start();
    tell(status, vscode.LanguageStatusSeverity.Information, version.trim(), program.path);
  } catch (error) {
    log.error(error instanceof Error ? error : String(error));
    tell(status, vscode.LanguageStatusSeverity.Error, "torchlint is not running", program.path);
    void offerHelp(program);
  } finally {
    status.busy = false;
  }
}

async function stop(): Promise<void> {
  const running = client;
  client = undefined;
  if (running?.needsStop()) {
    await running.stop();
  }
  await running?.dispose();
}

async function offerHelp(program: Program): Promise<void> {
  const settings = "Open Settings";
  const log = "Show Log";
  const answer = await vscode.window.showErrorMessage(
    `torchlint could not be started: ${program.path}, from ${program.origin}. ` +
      "Install it with the extra `lsp` in the project's environment, or set `torchlint.path`.",
    settings,
    log,
  );
  if (answer === settings) {
    await vscode.commands.executeCommand("workbench.action.openSettings", "torchlint");
  } else if (answer === log) {
    await vscode.commands.executeCommand("torchlint.showLog");
  }
}

function createStatus(): vscode.LanguageStatusItem {
  const status = vscode.languages.createLanguageStatusItem("torchlint", PROGRAMS);
  status.name = "torchlint";
  status.text = "torchlint";
  status.command = { title: "Show Log", command: "torchlint.showLog" };
  return status;
}

function tell(
  status: vscode.LanguageStatusItem,
  severity: vscode.LanguageStatusSeverity,
  text: string,
  detail: string,
): void {
  status.severity = severity;
  status.text = text;
  status.detail = detail;
}
