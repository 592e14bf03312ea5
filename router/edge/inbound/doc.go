// Package inbound reads what clients send to the router over HTTP and stdio.
//
// [ReadBody] reads a request body within limits of size, time and memory. [Parse] turns it into a [Message] and
// removes the API key. [CheckHeader] and [CheckVersion] compare the message with its headers; [Negotiate] and
// [ReadClientInfo] read initialize. Errors of type *jsonrpc.Error are sent to the client unchanged.
//
// The functions are safe for concurrent use. A Message belongs to its reader; its slices share the memory of the
// parsed bytes.
package inbound
