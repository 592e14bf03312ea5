#!/usr/bin/env node
// Runs the nexus program of the package for this platform, with the same arguments, streams, signals and exit code.
"use strict";
const { spawn } = require("node:child_process");

const platform = `${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`@agenticnexus/${platform}/nexus${process.platform === "win32" ? ".exe" : ""}`);
} catch {
  console.error(`agenticnexus: the package @agenticnexus/${platform} is not installed; install with optional dependencies, ` +
    "or build the program for this platform with Go");
  process.exit(1);
}
const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
const signals = ["SIGINT", "SIGTERM", "SIGHUP"];
for (const signal of signals) {
  process.on(signal, () => {
    if (process.platform !== "win32") child.kill(signal); // there the console tells the child, and kill would end it
  });
}
child.on("error", (error) => {
  console.error(`agenticnexus: cannot start ${program}: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (!signal) process.exit(code);
  for (const name of signals) process.removeAllListeners(name);
  process.kill(process.pid, signal);
});
