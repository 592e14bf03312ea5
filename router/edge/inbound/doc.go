// Package inbound reads what clients send to the router over HTTP and stdio.
//
// [ReadBody] reads a request body within bounds of size, time and memory. [Parse] makes a [Message] of it and takes the
// API key out. [CheckHeader] and [CheckVersion] compare the message with its headers, and [Negotiate] and
// [ReadClientInfo] read initialize. Errors of type *jsonrpc.Error go to the client as they are.
//
// The functions may be called from any goroutine. A Message belongs to its reader; its slices share the memory of the
// bytes that it was parsed from.
package inbound
