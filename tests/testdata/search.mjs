// Make a tool search request
const response = await fetch('/mcp', {
  method: 'POST',
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: {
      name: 'search_available_tools',
      arguments: { query: 'file operations' }
    }
  })
});

// Handle SSE stream
const reader = response.body.getReader();
const decoder = new TextDecoder();

while (true) {
  const { done, value } = await reader.read();
  if (done) break;
  
  const chunk = decoder.decode(value);
  const lines = chunk.split('\n');
  
  for (const line of lines) {
    if (line.startsWith('data: ')) {
      const eventData = JSON.parse(line.slice(6));
      
      if (eventData.method === 'notifications/tools/list_changed') {
        console.log('Tools changed, should refresh tool list');
      } else if (eventData.result) {
        console.log('Search results:', eventData.result);
      }
    }
  }
}
