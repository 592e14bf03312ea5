// Package bearertest has an issuer of access tokens for tests. [New] starts an [Issuer] on loopback. Its methods may be
// called from any goroutine.
package bearertest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Audience is that of tokens that do not say another.
const Audience = "https://mcp.example.com"

// Issuer issues tokens and publishes its keys.
type Issuer struct {
	URL string // the issuer

	server *httptest.Server
	mu     sync.Mutex
	key    Key
	keys   []Key // published
	serve  http.Handler
	asked  map[string]int // requests by path
}

// Key is a key of an issuer.
type Key struct {
	ID      string
	Method  jwt.SigningMethod
	Private crypto.Signer
}

// NewKey makes a key for an algorithm: RS256, PS256, ES256, ES384, ES512 or EdDSA.
func NewKey(t testing.TB, algorithm string) Key {
	t.Helper()
	k := Key{ID: rand.Text(), Method: jwt.GetSigningMethod(algorithm)}
	var err error
	switch algorithm {
	case "RS256", "PS256":
		k.Private, err = rsa.GenerateKey(rand.Reader, 2048)
	case "ES256":
		k.Private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "ES384":
		k.Private, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case "ES512":
		k.Private, err = ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	default:
		_, k.Private, err = ed25519.GenerateKey(rand.Reader)
	}
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// JWK returns the public key as a JSON Web Key.
func (k Key) JWK() map[string]any {
	encode := base64.RawURLEncoding.EncodeToString
	out := map[string]any{"kid": k.ID, "use": "sig", "alg": k.Method.Alg()}
	switch public := k.Private.Public().(type) {
	case *rsa.PublicKey:
		out["kty"], out["n"], out["e"] = "RSA", encode(public.N.Bytes()), encode(big.NewInt(int64(public.E)).Bytes())
	case *ecdsa.PublicKey:
		raw, _ := public.Bytes() // it is on its curve
		size := (len(raw) - 1) / 2
		out["kty"], out["crv"] = "EC", public.Params().Name
		out["x"], out["y"] = encode(raw[1:1+size]), encode(raw[1+size:])
	case ed25519.PublicKey:
		out["kty"], out["crv"], out["x"] = "OKP", "Ed25519", encode(public)
	}
	return out
}

// New starts an issuer, with an ES256 key, until the end of the test.
func New(t testing.TB) *Issuer {
	t.Helper()
	i := &Issuer{asked: map[string]int{}}
	i.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		i.asked[r.URL.Path]++
		serve := i.serve
		i.mu.Unlock()
		if serve == nil {
			serve = http.HandlerFunc(i.ServeHTTP)
		}
		serve.ServeHTTP(w, r)
	}))
	t.Cleanup(i.server.Close)
	i.URL = i.server.URL
	i.Publish(NewKey(t, "ES256"))
	return i
}

// Close makes the issuer unreachable.
func (i *Issuer) Close() { i.server.Close() }

// Publish publishes keys and no others, and signs with the first.
func (i *Issuer) Publish(keys ...Key) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys, i.key = keys, keys[0]
}

// Answer has h answer all requests; nil stands for the issuer itself.
func (i *Issuer) Answer(h http.HandlerFunc) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.serve = nil
	if h != nil {
		i.serve = h
	}
}

// Asked returns the number of requests for the key set.
func (i *Issuer) Asked() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked["/keys"]
}

// ServeHTTP serves the metadata (RFC 8414) and the key set.
func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/.well-known/oauth-authorization-server":
		fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, i.URL, i.server.URL+"/keys")
	case "/keys":
		i.mu.Lock()
		defer i.mu.Unlock()
		set := []any{}
		for _, k := range i.keys {
			set = append(set, k.JWK())
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": set})
	default:
		http.NotFound(w, r)
	}
}

// Claims are those of a token. They replace the usual ones; a nil value leaves a claim out.
type Claims map[string]any

// Token returns a token of the subject "ann" that counts for an hour.
func (i *Issuer) Token(c Claims) string {
	i.mu.Lock()
	key := i.key
	i.mu.Unlock()
	return i.Sign(key, nil, c)
}

// Sign returns a token that is signed by a key, with more headers. A nil header is left out.
func (i *Issuer) Sign(k Key, header map[string]any, c Claims) string {
	token := jwt.NewWithClaims(k.Method, jwt.MapClaims{
		"iss": i.URL, "aud": Audience, "sub": "ann", "exp": time.Now().Add(time.Hour).Unix(),
	})
	token.Header["kid"], token.Header["typ"] = k.ID, "at+jwt"
	replace(token.Header, header)
	replace(token.Claims.(jwt.MapClaims), c)
	var private any = k.Private
	if k.Private == nil {
		private = jwt.UnsafeAllowNoneSignatureType
	}
	signed, err := token.SignedString(private)
	if err != nil {
		panic(err) // the key is of the method
	}
	return signed
}

func replace(all, by map[string]any) {
	for name, value := range by {
		if all[name] = value; value == nil {
			delete(all, name)
		}
	}
}

// Clock is a time that a test sets. It may be used from any goroutine.
type Clock struct {
	mu sync.Mutex
	at time.Time
}

// NewClock returns a Clock that stands at the present.
func NewClock() *Clock { return &Clock{at: time.Now()} }

// Now returns its time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

// Pass moves it on.
func (c *Clock) Pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}
