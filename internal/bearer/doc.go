// Package bearer verifies the access tokens of one OAuth 2.0 issuer: JSON Web Tokens (RFC 9068, RFC 8725).
//
// [New] returns a [Verifier], and [Verifier.Verify] returns the [Token] of a text. A Verifier may be used from any
// goroutine and has none of its own. It fetches the issuer's keys when the first token comes that could be valid: the
// metadata by RFC 8414 or OpenID Connect Discovery, then the key set that this names (RFC 7517).
//
// The keys are kept for an hour and fetched anew every quarter of one, and when a token is signed by none of them.
// There is at most one attempt at a time and one every ten seconds, whatever clients send; it may take five seconds,
// 256 KiB for a document and 100 keys. While there are no keys, tokens are refused with [ErrUnavailable].
//
// A token that counts is not verified again while the issuer has the same keys. At most 10,000 tokens and 16 MiB are
// known so; the longest unused are verified anew.
package bearer
