// Calls a tool twice, and between the calls waits for a line on standard input: node restart.mjs PACKAGE URL TOOL ARGUMENTS
import { createInterface } from 'node:readline';

const [name, url, tool, args] = process.argv.slice(2);
const { Client } = await import(name === '@modelcontextprotocol/sdk' ? `${name}/client/index.js` : name);
const { StreamableHTTPClientTransport } = await import(name === '@modelcontextprotocol/sdk' ? `${name}/client/streamableHttp.js` : name);

const client = new Client({ name: 'restart', version: '1.0.0' });
const transport = new StreamableHTTPClientTransport(new URL(url));
client.onerror = (error) => console.error(`${error}`); // of the stream that breaks
await client.connect(transport);
const call = async () => console.log(JSON.stringify(await client.callTool({ name: tool, arguments: JSON.parse(args) })));
await call();
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
await lines.next();
await call();
console.log(`session ${transport.sessionId}`);
process.exit(0);
