// Applies all safe fixes of the active file, or of the active notebook.

import * as vscode from "vscode";

/** Applies what the server offers as one edit; says so if there is nothing to fix. */
export async function fixAll(): Promise<void> {
  const document = vscode.window.activeTextEditor?.document;
  if (!document) {
    return;
  }
  const inNotebook = document.uri.scheme === "vscode-notebook-cell";
  const kind = `${inNotebook ? "notebook." : ""}source.fixAll.torchlint`;
  const whole = new vscode.Range(0, 0, document.lineCount, 0);
  const [action] = await vscode.commands.executeCommand<vscode.CodeAction[]>(
    "vscode.executeCodeActionProvider",
    document.uri,
    whole,
    kind,
    1,
  );
  if (!action?.edit) {
    vscode.window.setStatusBarMessage("torchlint: no safe fixes", 5000);
  } else if (!(await vscode.workspace.applyEdit(action.edit))) {
    void vscode.window.showErrorMessage("torchlint: the fixes could not be applied.");
  }
}
