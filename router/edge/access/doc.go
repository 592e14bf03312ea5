// Package access decides who may talk to the router over HTTP: by Host and Origin of a request, and by API key or
// access token.
//
// [New] returns a [Policy]. [Policy.CheckOrigin] refuses requests of foreign web pages and answers CORS preflights.
// [Policy.Identify] reads the key or token of the headers, and [Policy.Admit] the key of a message. [Policy.Valid]
// tells later whether they still count for a caller. [Policy.ServeMetadata] and [Policy.Challenge] tell clients where
// to get tokens.
//
// A Policy may be used from any goroutine. It writes headers, the status of preflights and the metadata, nothing else.
package access
