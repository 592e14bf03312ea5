// Calls a tool that becomes a task, answers what it asks, and prints the result: node task.mjs URL TOOL ARGUMENTS ANSWER
import { withTasks, resultFromTaskOutcome } from '@modelcontextprotocol/ext-tasks/client';

const [url, tool, args, answer] = process.argv.slice(2);
const version = '2026-07-28';
const meta = {
  'io.modelcontextprotocol/protocolVersion': version,
  'io.modelcontextprotocol/clientInfo': { name: 'task', version: '1.0.0' },
  'io.modelcontextprotocol/clientCapabilities': { elicitation: {}, extensions: { 'io.modelcontextprotocol/tasks': {} } },
};
let last = 0;
const dispatch = async (request) => {
  const { method, params = {} } = request;
  const headers = {
    'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', 'MCP-Protocol-Version': version, 'Mcp-Method': method,
  };
  if (params.name ?? params.taskId) headers['Mcp-Name'] = params.name ?? params.taskId;
  const body = { jsonrpc: '2.0', id: ++last, method, params: { ...params, _meta: { ...params._meta, ...meta } } };
  const text = await (await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })).text();
  const response = JSON.parse(text.startsWith('{') ? text : text.split('data: ').pop());
  return response.error ? { kind: 'error', error: response.error } : { kind: 'result', result: response.result };
};
const { result } = await dispatch({ method: 'server/discover' });
const none = () => () => {};
const session = withTasks({
  endpointId: 'test', invalidated: false, dispatch, onServerRequest: none, onNotification: none, onInvalidated: none,
  taskCapabilities: { generation: 'v2', capabilities: result.capabilities.extensions['io.modelcontextprotocol/tasks'] },
}, { onInputRequest: async () => JSON.parse(answer) });
const execution = await session.callTool(tool, JSON.parse(args));
const { outcome } = await execution.settle();
console.log(JSON.stringify({ kind: execution.kind, result: resultFromTaskOutcome(outcome) }));
await session.close();
