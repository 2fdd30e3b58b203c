// Bundles the extension into one file; with --tests the tests too.

import { copyFile } from "node:fs/promises";
import esbuild from "esbuild";

const common = {
  bundle: true,
  platform: "node",
  format: "cjs",
  target: "node18",
  external: ["vscode"],
  logLevel: "warning",
};

await esbuild.build({
  ...common,
  entryPoints: ["src/extension.ts"],
  outfile: "dist/extension.js",
  minify: true,
});
await copyFile("../../LICENSE", "LICENSE");
if (process.argv.includes("--tests")) {
  await esbuild.build({ ...common, entryPoints: ["test/suite.ts"], outfile: "dist/tests/suite.js" });
}
