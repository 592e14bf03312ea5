// Package access decides who may talk to the router over HTTP: by the Host and Origin of a request, and by API key or
// access token.
//
// [New] returns a [Policy]. [Policy.CheckOrigin] refuses requests of foreign web pages and answers CORS preflights.
// [Policy.Identify] reads the key or token from the headers, and [Policy.Admit] the key from a message.
// [Policy.Valid] reports whether the credentials of a caller are still valid. [Policy.ServeMetadata] and
// [Policy.Challenge] tell clients where to get tokens.
//
// A Policy is safe for concurrent use. It writes only headers, the status of preflights and the metadata.
package access
