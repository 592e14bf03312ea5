// Packs the npm packages: node deploy/npm/pack.js VERSION BINARIES OUT. BINARIES has a folder GOOS_GOARCH for each
// platform.
"use strict";
const { execFileSync } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");

const [version, binaries, out] = process.argv.slice(2);
const common = {
  version,
  license: "Apache-2.0",
  homepage: "https://github.com/agenticnexus/agenticnexus",
  repository: { type: "git", url: "git+https://github.com/agenticnexus/agenticnexus.git" },
};

// pack packs files, given as {name in the package: source}.
function pack(description, files) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "nexus-npm-"));
  for (const [name, source] of Object.entries({ LICENSE: "LICENSE", ...files })) {
    fs.copyFileSync(source, path.join(folder, name));
    fs.chmodSync(path.join(folder, name), name.startsWith("nexus") ? 0o755 : 0o644);
  }
  fs.writeFileSync(path.join(folder, "package.json"), JSON.stringify({ ...description, ...common }, null, 2) + "\n");
  execFileSync("npm", ["pack", "--silent", "--pack-destination", out, folder], { stdio: ["ignore", "ignore", "inherit"] });
  fs.rmSync(folder, { recursive: true });
}

const optionalDependencies = {};
for (const folder of fs.readdirSync(binaries).sort()) {
  const [goos, goarch] = folder.split("_");
  const system = goos === "windows" ? "win32" : goos;
  const cpu = goarch === "amd64" ? "x64" : goarch;
  const program = system === "win32" ? "nexus.exe" : "nexus";
  const name = `@agenticnexus/${system}-${cpu}`;
  optionalDependencies[name] = version;
  pack({ name, description: `The program of agenticnexus for ${system} ${cpu}`, os: [system], cpu: [cpu], files: [program] },
    { [program]: path.join(binaries, folder, program) });
}
pack({
  name: "agenticnexus",
  description: "AgenticNexus: one MCP server in front of many, with a planner",
  keywords: ["mcp", "router"],
  bin: { agenticnexus: "nexus.js", nexus: "nexus.js" },
  files: ["nexus.js"],
  engines: { node: ">=18" },
  optionalDependencies,
}, { "nexus.js": path.join(__dirname, "nexus.js"), "README.md": "README.md" });
