// Runs in the extension host of a real VS Code, as an extension of its own, and writes what came of it.
//
// It finds the workspace and the folder for its results in the environment: see run.mjs.

import * as assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import * as path from "node:path";
import * as vscode from "vscode";

const RESULTS = process.env["TORCHLINT_TEST_RESULTS"] ?? "";
const PYTHON = process.env["TORCHLINT_TEST_PYTHON"] ?? "";
const SECONDS = 1000;

type Test = () => Promise<void>;

/** Waits until something is the case, and returns it. */
async function until<T>(what: string, look: () => T | undefined | false, limit = 60 * SECONDS): Promise<T> {
  const end = Date.now() + limit;
  for (;;) {
    const found = look();
    if (found !== undefined && found !== false) {
      return found;
    }
    assert.ok(Date.now() < end, `waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

function codes(uri: vscode.Uri): string[] {
  return vscode.languages
    .getDiagnostics(uri)
    .filter((item) => item.source === "torchlint")
    .map((item) => String(typeof item.code === "object" ? item.code.value : item.code));
}

/** Asks run.mjs for a picture of the window. */
async function picture(name: string): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 2 * SECONDS));
  const wanted = path.join(RESULTS, `${name}.wanted`);
  writeFileSync(wanted, "");
  await until(`the picture ${name}`, () => !existsSync(wanted));
}

async function open(name: string): Promise<vscode.TextDocument> {
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
  assert.ok(folder);
  const document = await vscode.workspace.openTextDocument(vscode.Uri.joinPath(folder, name));
  await vscode.window.showTextDocument(document);
  return document;
}

function set(name: string, value: unknown): Thenable<void> {
  return vscode.workspace.getConfiguration("torchlint").update(name, value, vscode.ConfigurationTarget.Global);
}

function tab(label: string): vscode.Tab | undefined {
  return vscode.window.tabGroups.all.flatMap((group) => group.tabs).find((item) => item.label === label);
}

const tests: Record<string, Test> = {
  "findings are shown, by the torchlint of the selected interpreter": async () => {
    const { uri } = await open("train.py");
    await until("findings", () => codes(uri).length > 0);
    assert.ok(codes(uri).includes("TL201"));
    assert.ok(codes(uri).includes("TL402"));
    await vscode.commands.executeCommand("workbench.actions.view.problems");
    await picture("findings");
    await vscode.commands.executeCommand("workbench.action.closePanel");
  },

  "a finding has quick fixes": async () => {
    const document = await open("train.py");
    const finding = vscode.languages.getDiagnostics(document.uri).find((item) => item.message.includes("arange"));
    assert.ok(finding);
    const offered = await vscode.commands.executeCommand<vscode.CodeAction[]>(
      "vscode.executeCodeActionProvider",
      document.uri,
      finding.range,
      vscode.CodeActionKind.QuickFix.value,
    );
    const titles = offered.map((action) => action.title);
    assert.ok(titles.includes("Create the tensor with `device=idx.device`"), titles.join());
    assert.ok(titles.includes("Disable TL201 for this line"), titles.join());
  },

  "settings take effect at once, and unset ones are forgotten": async () => {
    const { uri } = await open("train.py");
    await set("ignore", ["TL2"]);
    await until("TL2 to be ignored", () => !codes(uri).some((code) => code.startsWith("TL2")));
    assert.ok(codes(uri).includes("TL402"));
    await set("ignore", undefined);
    await until("TL2 to be back", () => codes(uri).includes("TL201"));
  },

  "without a server nothing is shown, and the next one starts": async () => {
    const { uri } = await open("train.py");
    await set("path", path.join(RESULTS, "missing"));
    await until("no findings", () => codes(uri).length === 0);
    await set("path", undefined);
    await set("interpreter", PYTHON);
    await until("findings", () => codes(uri).length > 0);
    await set("interpreter", undefined);
  },

  "the page of the rule at the cursor is shown": async () => {
    const document = await open("train.py");
    const finding = await until("findings", () =>
      vscode.languages.getDiagnostics(document.uri).find((item) => item.message.includes("arange")),
    );
    const editor = await vscode.window.showTextDocument(document);
    editor.selection = new vscode.Selection(finding.range.start, finding.range.start);
    await vscode.commands.executeCommand("torchlint.showRule");
    await until("the page", () => tab("Preview TL201.md"));
    const page = await vscode.workspace.openTextDocument(vscode.Uri.parse("torchlint-rule:TL201.md"));
    assert.match(page.getText(), /^# tensor-created-on-host \(TL201\)/);
    await picture("rule");
  },

  "all safe fixes of a file": async () => {
    await vscode.commands.executeCommand("workbench.action.closeAllEditors");
    const document = await open("train.py");
    await until("findings", () => codes(document.uri).includes("TL201"));
    await vscode.commands.executeCommand("torchlint.fixAll");
    await until("the fixes", () => document.getText().includes("dtype=torch.long, device=idx.device)"));
    await until("other findings", () => !codes(document.uri).includes("TL201"));
    assert.ok(codes(document.uri).includes("TL402"), "what has no safe fix stays");
    await vscode.commands.executeCommand("workbench.action.files.revert");
  },

  "findings and fixes of a notebook": async () => {
    const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
    assert.ok(folder);
    const notebook = await vscode.workspace.openNotebookDocument(vscode.Uri.joinPath(folder, "train.ipynb"));
    await vscode.window.showNotebookDocument(notebook, { selections: [new vscode.NotebookRange(1, 2)] });
    const cell = notebook.cellAt(1).document;
    await until("findings in the cell", () => codes(cell.uri).includes("TL202"));
    assert.ok(!codes(notebook.cellAt(0).document.uri).includes("TL202"));
    await picture("notebook");
    await vscode.commands.executeCommand("notebook.cell.edit");
    await until("the editor of the cell", () => vscode.window.activeTextEditor?.document === cell);
    await vscode.commands.executeCommand("torchlint.fixAll");
    await until("the fixes", () => cell.getText().includes("pin_memory=True"));
    await vscode.commands.executeCommand("workbench.action.revertAndCloseActiveEditor");
  },

  "findings and fixes of a configuration file that a program reads": async () => {
    const document = await open("configured/config.yaml");
    await until("findings", () => codes(document.uri).includes("TL102"));
    await picture("configuration");
    await vscode.commands.executeCommand("torchlint.fixAll");
    await until("the fix", () => document.getText().includes("pin_memory: true"));
    await until("other findings", () => !codes(document.uri).includes("TL102"));
    await vscode.commands.executeCommand("workbench.action.files.revert");
  },

  "a file is verified, and the report shown": async () => {
    await vscode.commands.executeCommand("workbench.action.closeAllEditors");
    await open("train.py");
    await set("verify.arguments", ["--budget", "5", "--device", "cpu", "--select", "TL302"]);
    await vscode.commands.executeCommand("torchlint.verify");
    const shown = await until("the report", () => tab("Verified: train.py"));
    assert.ok(shown.input instanceof vscode.TabInputWebview);
    assert.match(shown.input.viewType, /torchlint\.report$/);
    await picture("report");
  },
};

export async function activate(): Promise<void> {
  const outcomes: Record<string, string> = {};
  for (const [name, test] of Object.entries(tests)) {
    try {
      await test();
      outcomes[name] = "passed";
    } catch (error) {
      outcomes[name] = error instanceof Error ? (error.stack ?? error.message) : String(error);
    }
    console.log(`${name}: ${outcomes[name]}`);
  }
  writeFileSync(path.join(RESULTS, "outcomes.json"), JSON.stringify(outcomes));
}
