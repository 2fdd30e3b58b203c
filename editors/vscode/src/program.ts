// Which torchlint is run: the one of the settings, of the project's environment, or of the PATH.

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import * as path from "node:path";
import { promisify } from "node:util";
import { PythonExtension } from "@vscode/python-extension";
import * as vscode from "vscode";

const EXECUTABLE = process.platform === "win32" ? "torchlint.exe" : "torchlint";

/** A torchlint, and why it is this one. */
export interface Program {
  readonly path: string;
  readonly origin: string;
}

/** The torchlint to run for a file, or for the first folder. */
export async function findProgram(resource?: vscode.Uri): Promise<Program> {
  const settings = vscode.workspace.getConfiguration("torchlint", resource ?? null);
  const chosen = settings.get<string>("path");
  if (chosen) {
    return { path: chosen, origin: "the setting torchlint.path" };
  }
  const interpreter = settings.get<string>("interpreter");
  if (interpreter) {
    // One that is not there is an error to be told, and no reason to run another.
    const found = besideInterpreter(interpreter) ?? path.join(path.dirname(interpreter), EXECUTABLE);
    return { path: found, origin: "the setting torchlint.interpreter" };
  }
  const selected = await selectedInterpreter(resource);
  const found = selected && besideInterpreter(selected);
  return found
    ? { path: found, origin: `the environment of ${selected}` }
    : { path: "torchlint", origin: "the PATH" };
}

/** The output of a torchlint that only tells something; rejects if it cannot. */
export async function ask(program: Program, ...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(program.path, args, { maxBuffer: 64 * 1024 * 1024 });
  return stdout;
}

/** Calls back when another interpreter is selected in the Python extension. */
export async function onInterpreterChange(callback: () => void): Promise<vscode.Disposable | undefined> {
  const python = await pythonExtension();
  return python?.environments.onDidChangeActiveEnvironmentPath(callback);
}

// The program is run as such, and not by `python -m`: that would import a torchlint.py of the project.
function besideInterpreter(interpreter: string): string | undefined {
  const folder = path.dirname(interpreter);
  const places = [folder, path.join(folder, "Scripts"), path.join(folder, "bin")];
  return places.map((place) => path.join(place, EXECUTABLE)).find((file) => existsSync(file));
}

async function selectedInterpreter(resource?: vscode.Uri): Promise<string | undefined> {
  const python = await pythonExtension();
  if (!python) {
    return undefined;
  }
  const active = python.environments.getActiveEnvironmentPath(resource);
  const environment = await python.environments.resolveEnvironment(active);
  return environment?.executable.uri?.fsPath;
}

async function pythonExtension(): Promise<PythonExtension | undefined> {
  try {
    return await PythonExtension.api();
  } catch {
    return undefined; // it is not installed
  }
}
