// Tries what a server offers, and prints what fails: node features.mjs PACKAGE MODE URL OFFERS
import { setTimeout as sleep } from 'node:timers/promises';

const [name, mode, url, offers] = process.argv.slice(2);
const old = name === '@modelcontextprotocol/sdk';
const { Client } = await import(old ? `${name}/client/index.js` : name);
const { StreamableHTTPClientTransport } = await import(old ? `${name}/client/streamableHttp.js` : name);
const schemas = old ? await import(`${name}/types.js`) : undefined;

const patience = 15_000;
const of = JSON.parse(offers);

const heard = {};
const client = new Client({ name: 'features', version: '1.0.0' }, {
  capabilities: { sampling: {}, elicitation: {}, roots: {} },
  ...(old ? {} : { versionNegotiation: { mode } }),
});
const on = (method, schema, answer) => client.setRequestHandler(old ? schemas[schema] : method, answer);
const hear = (method, schema) =>
  client.setNotificationHandler(old ? schemas[schema] : method, (n) => { (heard[method] ??= []).push(n.params); });
on('sampling/createMessage', 'CreateMessageRequestSchema', async () =>
  ({ role: 'assistant', model: 'm', content: { type: 'text', text: 'sampled' } }));
let asked; // instead of an answer
on('elicitation/create', 'ElicitRequestSchema', async () => {
  if (asked) { asked(); await sleep(1000); }
  return { action: 'accept', content: { name: 'Ann', username: 'Ann', email: 'ann@example.com' } };
});
on('roots/list', 'ListRootsRequestSchema', async () => ({ roots: [] }));
hear('notifications/message', 'LoggingMessageNotificationSchema');
hear('notifications/resources/updated', 'ResourceUpdatedNotificationSchema');

const until = async (what, happens) => {
  for (const end = Date.now() + patience; !happens(); await sleep(10)) if (Date.now() > end) throw new Error(`no ${what}`);
};
const call = ({ Tool, Args }, options) => {
  const params = { name: Tool, arguments: Args };
  if (modern) params._meta = { 'io.modelcontextprotocol/logLevel': 'debug' };
  return old ? client.callTool(params, undefined, options) : client.callTool(params, options);
};
const says = async (one, want) => {
  const text = JSON.stringify(await call(one));
  if (!text.includes(want)) throw new Error(`got ${text.slice(0, 300)}, want ${want}`);
};

await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const modern = !old && client.getNegotiatedProtocolVersion() === '2026-07-28';
if (modern !== (mode === 'auto')) console.log('got another era');
const tries = {
  list: async () => {
    const { tools } = await client.listTools();
    if (!tools.some((tool) => tool.name === of.Call.Tool)) throw new Error(JSON.stringify(tools.map((t) => t.name)));
  },
  call: () => says(of.Call, of.Answer),
  progress: async () => {
    let seen = 0;
    await call(of.Progress, { onprogress: () => seen++ });
    if (seen === 0) throw new Error('no reports');
  },
  elicitation: () => says(of.Elicit, 'Ann'),
  sampling: () => says(of.Sample, 'sampled'),
  cancel: async () => {
    const fails = async (tool, begin) => {
      const stop = new AbortController();
      const options = begin(() => stop.abort('enough'));
      await call(tool, { signal: stop.signal, ...options })
        .then(() => { throw new Error('got a result'); }, (error) => { if (!stop.signal.aborted) throw error; });
    };
    await fails(of.Slow, (stop) => ({ onprogress: stop }));
    await fails(of.Elicit, (stop) => { asked = stop; });
    asked = undefined;
    await says(of.Elicit, 'Ann'); // the call that was cancelled is in nobody's way
  },
  log: async () => {
    if (!modern) await client.setLoggingLevel('debug');
    await call(of.Log);
    await until('log message', () => heard['notifications/message']?.length > 0);
    if (of.Update.Tool) await call(of.Log);
  },
  update: async () => {
    let end = () => client.unsubscribeResource({ uri: of.Resource });
    if (modern) {
      const subscription = await client.listen({ resourceSubscriptions: [of.Resource] });
      end = () => subscription.close();
    } else {
      await client.subscribeResource({ uri: of.Resource });
    }
    if (of.Update.Tool) await call(of.Update); // begins them
    await until('update', () => heard['notifications/resources/updated']?.some((n) => n.uri === of.Resource));
    if (of.Update.Tool) await call(of.Update); // ends them
    await end();
  },
};
for (const [feature, works] of Object.entries(tries)) {
  try {
    await works();
  } catch (error) {
    console.log(`${feature}: ${error}`);
  }
}
await client.close();
process.exit(0);
