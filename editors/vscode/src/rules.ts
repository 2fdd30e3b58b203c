// The pages of rules, as Markdown documents.

import * as vscode from "vscode";
import { ask, findProgram } from "./program";

const SCHEME = "torchlint-rule";

interface Rule extends vscode.QuickPickItem {
  readonly code: string;
}

/** Lets documents with the pages of rules be opened. */
export function registerPages(): vscode.Disposable {
  return vscode.workspace.registerTextDocumentContentProvider(SCHEME, {
    provideTextDocumentContent: async (uri) => ask(await findProgram(), "rule", uri.path.replace(/\.md$/, "")),
  });
}

/** Shows the page of a rule: the one given, that of the finding at the cursor, or one to be chosen. */
export async function showRule(code?: string): Promise<void> {
  const wanted = code ?? codeAtCursor() ?? (await chosen());
  if (wanted) {
    const page = vscode.Uri.from({ scheme: SCHEME, path: `${wanted}.md` });
    await vscode.commands.executeCommand("markdown.showPreview", page);
  }
}

function codeAtCursor(): string | undefined {
  const editor = vscode.window.activeTextEditor;
  const place = editor?.selection.active;
  if (!editor || !place) {
    return undefined;
  }
  const found = vscode.languages
    .getDiagnostics(editor.document.uri)
    .find((item) => item.source === "torchlint" && item.range.contains(place));
  const code = typeof found?.code === "object" ? found.code.value : found?.code;
  return code?.toString();
}

async function chosen(): Promise<string | undefined> {
  const listed = ask(await findProgram(), "rule", "--all", "--output-format", "json").then((text) =>
    (JSON.parse(text) as { code: string; name: string; summary: string }[]).map(
      ({ code, name, summary }): Rule => ({ label: code, description: name, detail: summary, code }),
    ),
  );
  const rule = await vscode.window.showQuickPick(listed, {
    title: "Show Rule",
    matchOnDescription: true,
    matchOnDetail: true,
  });
  return rule?.code;
}
