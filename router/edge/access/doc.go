// Package access decides who may talk to the router over HTTP: by Host and Origin of a request, and by API key.
//
// [New] returns a [Policy]. [Policy.CheckOrigin] refuses requests of foreign web pages and answers CORS preflights.
// [Policy.Identify] reads the API key of the headers, and [Policy.Admit] that of a message. [Policy.Valid] tells later
// whether a caller's key still counts.
//
// A Policy may be used from any goroutine. It writes headers, and the status of preflights, but no bodies.
package access
