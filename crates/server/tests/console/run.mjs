// Runs one scenario: node run.mjs NAME. What it needs to know is in the environment; see crates/cli/tests/console.rs.

import { launch } from "./browser.mjs";
import * as scenarios from "./scenarios.mjs";

const name = process.argv[2] ?? "";
const scenario = scenarios[name];
if (!scenario) {
  console.error(`there is no scenario ${name}`);
  process.exit(2);
}
const browser = await launch();
let failed = false;
try {
  await scenario(browser);
} catch (error) {
  failed = true;
  console.error(`${name}: ${error.stack ?? error}`);
}
for (const complaint of browser.complaints) {
  failed = true;
  console.error(`${name}: ${complaint}`);
}
await browser.close();
process.exit(failed ? 1 : 0);
