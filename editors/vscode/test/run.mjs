// Tests the packaged extension in a real VS Code: code-server, shown by a headless Chromium.
//
// Both are looked for on the PATH; CODE_SERVER and CHROMIUM name others. The torchlint to test with, and torch, are
// those of ../../.venv, or of the interpreter that PYTHON names. What came of it is written to results.json, which
// is kept in the repository; the pictures go to dist/tests.

import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const here = path.dirname(import.meta.dirname);
const root = path.dirname(path.dirname(here));
const python = process.env.PYTHON ?? path.join(root, ".venv", "bin", "python");
const codeServer = process.env.CODE_SERVER ?? "code-server";
const chromium = process.env.CHROMIUM ?? "chromium";
const LIMIT = 15 * 60_000;
const children = [];
process.on("exit", () => {
  children.forEach(({ pid }) => process.kill(-pid, "SIGKILL"));
  rmSync(scratch, { recursive: true, force: true, maxRetries: 9, retryDelay: 200 });
});

// --- what VS Code is given -----------------------------------------------------------------------------

// The Python extension is not on any registry of packages: this has the part of its interface that is used.
const PYTHON_EXTENSION = `
exports.activate = () => ({
  environments: {
    getActiveEnvironmentPath: () => ({ id: "1", path: process.env.TORCHLINT_TEST_PYTHON }),
    resolveEnvironment: async ({ path }) => ({ executable: { uri: require("vscode").Uri.file(path) } }),
    onDidChangeActiveEnvironmentPath: () => ({ dispose() {} }),
  },
});
`;

const NOTEBOOK = [
  "import torch\nfrom torch.utils.data import DataLoader\n",
  "def train(model, dataset, optimizer, criterion):\n" +
    '    device = torch.device("cuda")\n' +
    "    loader = DataLoader(dataset, batch_size=64, shuffle=True, num_workers=8)\n" +
    "    total = 0.0\n" +
    "    for images, labels in loader:\n" +
    "        loss = criterion(model(images.to(device)), labels.to(device))\n" +
    "        optimizer.zero_grad()\n" +
    "        loss.backward()\n" +
    "        optimizer.step()\n" +
    "        total += loss.item()\n",
];

function write(file, text) {
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, typeof text === "string" ? text : JSON.stringify(text));
}

function extension(folder, publisher, name, main, events) {
  write(path.join(folder, "package.json"), {
    name,
    publisher,
    version: "1.0.0",
    engines: { vscode: "^1.91.0" },
    main,
    activationEvents: events,
  });
}

const scratch = await mkdtemp(path.join(tmpdir(), "torchlint-vscode-"));
const extensions = path.join(scratch, "extensions");
const workspace = path.join(scratch, "workspace");
const pictures = path.join(here, "dist", "tests", "pictures");

write(path.join(scratch, "user", "User", "settings.json"), {
  "workbench.colorTheme": process.env.THEME ?? "Default Light Modern",
  "workbench.startupEditor": "none",
  "window.commandCenter": false,
  "telemetry.telemetryLevel": "off",
});
write(path.join(workspace, "pyproject.toml"), "[tool.torchlint]\n");
copyFileSync(path.join(root, "fixtures", "programs", "gpt.py"), path.join(workspace, "train.py"));
cpSync(path.join(root, "fixtures", "projects", "configs", "bad_yaml"), path.join(workspace, "configured"), {
  recursive: true,
});
write(path.join(workspace, "train.ipynb"), {
  cells: NOTEBOOK.map((source) => ({
    cell_type: "code",
    execution_count: null,
    metadata: {},
    outputs: [],
    source: source.split(/(?<=\n)/),
  })),
  metadata: { kernelspec: { display_name: "Python", language: "python", name: "python3" } },
  nbformat: 4,
  nbformat_minor: 4,
});
extension(path.join(extensions, "ms-python.python-1.0.0"), "ms-python", "python", "./main.js", []);
write(path.join(extensions, "ms-python.python-1.0.0", "main.js"), PYTHON_EXTENSION);
const suite = path.join(extensions, "torchlint.tests-1.0.0");
extension(suite, "torchlint", "tests", "./suite.js", ["onStartupFinished"]);
copyFileSync(path.join(here, "dist", "tests", "suite.js"), path.join(suite, "suite.js"));

// --- VS Code -------------------------------------------------------------------------------------------

const shared = ["--extensions-dir", extensions, "--user-data-dir", path.join(scratch, "user")];
const installed = spawnSync(
  codeServer,
  [...shared, "--force", "--install-extension", path.join(here, "torchlint.vsix")],
  { encoding: "utf8" },
);
if (installed.status !== 0) {
  console.error(installed.error?.message ?? installed.stdout + installed.stderr);
  console.error("These tests need code-server, from npm, and torchlint.vsix, from `npm run package`.");
  process.exit(2);
}
const version = spawnSync(codeServer, ["--version"], { encoding: "utf8" }).stdout.trim().split("\n").pop();

const socket = createServer().listen(0, "127.0.0.1");
await once(socket, "listening");
const { port } = socket.address();
socket.close();
children.push(spawn(
  codeServer,
  [
    ...shared,
    ...["--bind-addr", `127.0.0.1:${port}`, "--auth", "none", "--disable-telemetry", "--disable-update-check"],
    ...["--disable-workspace-trust", "--disable-getting-started-override", workspace],
  ],
  {
    env: { ...process.env, TORCHLINT_TEST_RESULTS: scratch, TORCHLINT_TEST_PYTHON: python },
    stdio: ["ignore", process.env.VERBOSE ? "inherit" : "ignore", "inherit"],
    detached: true,
  },
));
const address = `http://127.0.0.1:${port}/?folder=${workspace}`;
while (!(await fetch(address).catch(() => undefined))) {
  await sleep(200);
}

// --- the browser, which speaks the DevTools protocol on a pipe ---------------------------------------------

const browser = spawn(
  chromium,
  [
    ...["--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--no-first-run"],
    ...[`--user-data-dir=${path.join(scratch, "chromium")}`, "about:blank"],
  ],
  { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"], detached: true },
);
children.push(browser);
const waiting = new Map();
let received = "";
browser.stdio[4].setEncoding("utf8").on("data", (data) => {
  const messages = (received + data).split("\0");
  received = messages.pop();
  for (const message of messages.map((text) => JSON.parse(text))) {
    waiting.get(message.id)?.(message.result);
  }
});
let number = 0;
function send(method, params = {}, sessionId = undefined) {
  const id = ++number;
  browser.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
  return new Promise((resolve) => waiting.set(id, resolve));
}
const { targetId } = await send("Target.createTarget", { url: address });
const { sessionId } = await send("Target.attachToTarget", { targetId, flatten: true });
const size = { width: 1280, height: 800, deviceScaleFactor: 1, mobile: false };
await send("Emulation.setDeviceMetricsOverride", size, sessionId);

// --- the tests ------------------------------------------------------------------------------------------

rmSync(pictures, { recursive: true, force: true });
mkdirSync(pictures, { recursive: true });
const results = path.join(scratch, "outcomes.json");
const end = Date.now() + LIMIT;
while (!existsSync(results) && Date.now() < end) {
  for (const file of readdirSync(scratch).filter((name) => name.endsWith(".wanted"))) {
    const { data } = await send("Page.captureScreenshot", {}, sessionId);
    writeFileSync(path.join(pictures, file.replace(".wanted", ".png")), Buffer.from(data, "base64"));
    rmSync(path.join(scratch, file));
  }
  await sleep(200);
}
await sleep(200); // until it is written in full
const outcomes = existsSync(results) ? JSON.parse(readFileSync(results, "utf8")) : { "the tests end": "no" };

const failed = Object.entries(outcomes).filter(([, outcome]) => outcome !== "passed");
for (const [name, outcome] of Object.entries(outcomes)) {
  console.log(`${outcome === "passed" ? "passed" : "FAILED"}  ${name}`);
}
if (failed.length) {
  // What the extension has logged, to see what went wrong.
  const logs = readdirSync(path.join(scratch, "user", "logs"), { recursive: true });
  for (const file of logs.filter((name) => /torchlint[^/]*\.log$/.test(name))) {
    console.error(`\n${file}\n${readFileSync(path.join(scratch, "user", "logs", file), "utf8")}`);
  }
}
for (const [name, outcome] of failed) {
  console.error(`\n${name}\n${outcome}`);
}
writeFileSync(
  path.join(here, "test", "results.json"),
  `${JSON.stringify({ "code-server": version, failed: failed.length, outcomes }, undefined, 2)}\n`,
);
process.exit(failed.length ? 1 : 0);
