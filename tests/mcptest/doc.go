// Package mcptest has an MCP server and an MCP client for tests of the router under faults and load.
//
// The Server speaks streamable HTTP, HTTP+SSE and newline-delimited JSON, has tools that only read and tools that
// write, and enters each write in a Ledger, which other processes may share. A test can take any message away from it
// and answer in its place, as wrongly as it likes. The Client speaks streamable HTTP and HTTP+SSE, and says in one word
// what came of a request. Both speak the protocol version that their field Version names, and allow concurrent use.
package mcptest
