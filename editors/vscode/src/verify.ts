// Measures what the fixes of a file are worth, and shows the report.

import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import * as path from "node:path";
import * as vscode from "vscode";
import { findProgram } from "./program";

/** Runs `torchlint verify` on the file of the active editor, and shows its report beside it. */
export async function verifyFile(log: vscode.LogOutputChannel): Promise<void> {
  const document = vscode.window.activeTextEditor?.document;
  if (document?.languageId !== "python" || document.uri.scheme !== "file") {
    void vscode.window.showErrorMessage("torchlint verifies Python files: open one first.");
    return;
  }
  await document.save();
  const folder = await mkdtemp(path.join(tmpdir(), "torchlint-"));
  try {
    const report = path.join(folder, "report.html");
    const status = await vscode.window.withProgress(
      {
        location: vscode.ProgressLocation.Notification,
        title: `Verifying ${path.basename(document.fileName)}`,
        cancellable: true,
      },
      (_, token) => measure(document.uri, report, log, token),
    );
    const page = await readFile(report, "utf8").catch(() => undefined);
    if (page !== undefined) {
      show(`Verified: ${path.basename(document.fileName)}`, page);
    } else if (status !== undefined) {
      log.show(true);
      void vscode.window.showErrorMessage("torchlint could not verify the file; see the log.");
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The exit status; undefined if the user cancelled. An interrupted run reports what it has measured. */
async function measure(
  file: vscode.Uri,
  report: string,
  log: vscode.LogOutputChannel,
  token: vscode.CancellationToken,
): Promise<number | undefined> {
  const program = await findProgram(file);
  const given = vscode.workspace.getConfiguration("torchlint", file).get<string[]>("verify.arguments", []);
  const end = given.indexOf("--");
  const [own, others] = end < 0 ? [given, []] : [given.slice(0, end), given.slice(end)];
  const args = ["verify", "--html", report, ...own, file.fsPath, ...others];
  const folder = vscode.workspace.getWorkspaceFolder(file)?.uri.fsPath ?? path.dirname(file.fsPath);
  log.info([program.path, ...args].join(" "));
  return new Promise((resolve) => {
    const child = spawn(program.path, args, { cwd: folder, stdio: ["ignore", "pipe", "pipe"] });
    const write = (data: Buffer): void => log.append(data.toString());
    child.stdout.on("data", write);
    child.stderr.on("data", write);
    token.onCancellationRequested(() => child.kill("SIGINT"));
    child.on("error", (error) => {
      log.error(error);
      resolve(2);
    });
    child.on("close", (status) => resolve(token.isCancellationRequested ? undefined : (status ?? 2)));
  });
}

// The page has no scripts, and its own policy allows none.
function show(title: string, page: string): void {
  const panel = vscode.window.createWebviewPanel("torchlint.report", title, vscode.ViewColumn.Beside, {
    enableScripts: false,
    localResourceRoots: [],
  });
  panel.webview.html = page;
}
