// Package bearer verifies the access tokens of one OAuth 2.0 issuer: JSON Web Tokens (RFC 9068, RFC 8725).
//
// [New] returns a [Verifier], and [Verifier.Verify] verifies and decodes a [Token]. A Verifier is safe for concurrent
// use and starts no goroutine. It fetches the issuer's keys for the first plausible token: the metadata by RFC 8414 or
// OpenID Connect Discovery, then the key set that the metadata names (RFC 7517).
//
// Keys are valid for an hour. They are fetched again every 15 minutes, and when a token is signed by an unknown key.
// Only one attempt runs at a time and at most one every ten seconds, whatever clients send; it is limited to five
// seconds, 256 KiB per document and 100 keys. Without keys, tokens are refused with [ErrUnavailable].
//
// A valid token is not verified again while the issuer has the same keys. The cache of verified tokens has at most
// 10,000 tokens and 16 MiB; it evicts the least recently used.
package bearer
