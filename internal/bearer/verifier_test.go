package bearer_test

import (
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"go.uber.org/goleak"

	"github.com/agenticnexus/agenticnexus/internal/bearer"
	"github.com/agenticnexus/agenticnexus/internal/bearer/bearertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// verifier returns a Verifier of an issuer's tokens.
func verifier(issuer *bearertest.Issuer, change ...func(*bearer.Options)) *bearer.Verifier {
	o := bearer.Options{Issuer: issuer.URL, Accepts: func(aud string) bool { return aud == bearertest.Audience }}
	for _, f := range change {
		f(&o)
	}
	return bearer.New(o)
}

func TestAlgorithms(t *testing.T) {
	issuer := bearertest.New(t)
	v := verifier(issuer, func(o *bearer.Options) { o.Retry = time.Nanosecond })
	for _, algorithm := range []string{"RS256", "PS256", "ES256", "ES384", "ES512", "EdDSA"} {
		issuer.Publish(bearertest.NewKey(t, algorithm))
		token, err := v.Verify(t.Context(), issuer.Token(nil))
		if err != nil || token.Subject != "ann" || token.Claims["iss"] != issuer.URL {
			t.Errorf("%s: got %+v, %v, want the token of ann", algorithm, token, err)
		}
	}
}

func TestRefused(t *testing.T) {
	issuer, stranger := bearertest.New(t), bearertest.NewKey(t, "ES256")
	rsaKey := bearertest.NewKey(t, "RS256")
	own := bearertest.NewKey(t, "ES256")
	issuer.Publish(own, rsaKey)
	v := verifier(issuer)
	public, err := x509.MarshalPKIXPublicKey(rsaKey.Private.Public())
	if err != nil {
		t.Fatal(err)
	}
	bySecret := func(secret []byte) string {
		token := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{"iss": issuer.URL, "aud": bearertest.Audience, "sub": "eve", "exp": time.Now().Add(time.Hour).Unix()})
		token.Header["kid"] = rsaKey.ID
		signed, err := token.SignedString(secret)
		if err != nil {
			t.Fatal(err)
		}
		return signed
	}
	with := func(name string, value any) string { return issuer.Token(bearertest.Claims{name: value}) }
	header := func(name string, value any) string {
		return issuer.Sign(own, map[string]any{name: value}, nil)
	}
	good := issuer.Token(nil)
	parts := strings.Split(good, ".")
	now := time.Now()
	for _, row := range []struct{ name, token, want string }{
		{"good", good, ""},
		{"without typ", header("typ", nil), ""},
		{"typ JWT", header("typ", "JWT"), ""},
		{"typ with application/", header("typ", "application/AT+JWT"), ""},
		{"without kid", header("kid", nil), ""},
		{"one of several audiences", with("aud", []string{"x", bearertest.Audience}), ""},
		{"expired within the leeway", with("exp", now.Add(-10*time.Second).Unix()), ""},
		{"counts soon, within the leeway", with("nbf", now.Add(10*time.Second).Unix()), ""},
		{"Keycloak's access token", with("typ", "Bearer"), ""},

		{"alg none", issuer.Sign(bearertest.Key{Method: jwt.SigningMethodNone}, nil, nil), "asymmetric"},
		{"HS256 by the public key in PEM", bySecret(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})), "asymmetric"},
		{"HS256 by the public key in DER", bySecret(public), "asymmetric"},
		{"HS256 by the modulus", bySecret(rsaKey.Private.Public().(*rsa.PublicKey).N.Bytes()), "asymmetric"},
		{"an algorithm that nobody knows", header("alg", "XX256"), "malformed"},
		{"the algorithm of another key", header("alg", "RS256"), "no key"},
		{"a stranger's key", issuer.Sign(stranger, nil, nil), "no key"},
		{"a stranger's key with a known id", issuer.Sign(stranger, map[string]any{"kid": own.ID}, nil), "no key"},
		{"a stranger's key in the header", issuer.Sign(stranger, map[string]any{"jwk": stranger.JWK(), "kid": nil}, nil), "no key"},
		{"changed claims", parts[0] + "." + strings.Split(with("sub", "eve"), ".")[1] + "." + parts[2], "no key"},
		{"no signature", parts[0] + "." + parts[1] + ".", "no key"},
		{"critical header", header("crit", []string{"exp"}), "critical"},
		{"logout token", header("typ", "logout+jwt"), "not an access token"},
		{"ID token", with("at_hash", "x"), "not an access token"},
		{"Keycloak's ID token", with("typ", "ID"), "not an access token"},
		{"Cognito's ID token", with("token_use", "id"), "not an access token"},
		{"security event", with("events", map[string]any{}), "not an access token"},
		{"another issuer", with("iss", issuer.URL+"/"), "another issuer"},
		{"without issuer", with("iss", nil), "another issuer"},
		{"another audience", with("aud", "https://other.example.com"), "another audience"},
		{"without audience", with("aud", nil), "another audience"},
		{"a wrong type of audience", with("aud", 7), "another audience"},
		{"expired", with("exp", now.Add(-time.Minute).Unix()), "expired"},
		{"without expiry", with("exp", nil), "malformed"},
		{"a wrong type of expiry", with("exp", "tomorrow"), "malformed"},
		{"not yet", with("nbf", now.Add(time.Minute).Unix()), "not count yet"},
		{"without subject", with("sub", nil), "no sub"},
		{"an empty subject", with("sub", ""), "no sub"},
		{"a long subject", with("sub", strings.Repeat("x", 256)), "no sub"},
		{"a subject over two lines", with("sub", "ann\nbob"), "no sub"},
		{"empty", "", "malformed"},
		{"dots", "..", "malformed"},
		{"two parts", parts[0] + "." + parts[1], "malformed"},
		{"four parts", good + ".x", "malformed"},
		{"encrypted", good + "..", "malformed"},
		{"padded", parts[0] + "=." + parts[1] + "." + parts[2], "malformed"},
		{"no JSON", "eA.eA.eA", "malformed"},
		{"null", base64.RawURLEncoding.EncodeToString([]byte("null")) + "." + parts[1] + "." + parts[2], "malformed"},
		{"huge", good + strings.Repeat("x", 1<<20), "too long"},
	} {
		_, err := v.Verify(t.Context(), row.token)
		var invalid bearer.Invalid
		switch {
		case row.want == "" && err != nil:
			t.Errorf("%s: got %v, want the token to count", row.name, err)
		case row.want != "" && (!errors.As(err, &invalid) || !strings.Contains(err.Error(), row.want)):
			t.Errorf("%s: got %v, want it invalid with %q", row.name, err, row.want)
		case err != nil && (strings.ContainsAny(err.Error(), "\"\\\n") || len(parts[2]) > 0 && strings.Contains(err.Error(), parts[2])):
			t.Errorf("%s: got %v, want plain text without the token", row.name, err)
		}
	}
}

// The key set is asked for only for tokens that could be valid.
func TestImplausibleTokensFetchNothing(t *testing.T) {
	issuer := bearertest.New(t)
	v := verifier(issuer)
	for _, token := range []string{"", "a.b.c", issuer.Token(bearertest.Claims{"iss": "x"}), issuer.Token(bearertest.Claims{"aud": "x"}), issuer.Token(bearertest.Claims{"exp": 1})} {
		if _, err := v.Verify(t.Context(), token); err == nil {
			t.Errorf("%.20s: got it accepted", token)
		}
	}
	if got := issuer.Asked(); got != 0 {
		t.Errorf("got %d requests for the keys, want none", got)
	}
}

// A request that has ended waits for no keys.
func TestEndedRequest(t *testing.T) {
	issuer := bearertest.New(t)
	v := verifier(issuer)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := v.Verify(ctx, issuer.Token(nil)); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the token or that the request has ended", err)
	}
}

func FuzzVerify(f *testing.F) {
	issuer := bearertest.New(f)
	v := verifier(issuer)
	f.Add(issuer.Token(nil))
	f.Add(issuer.Sign(bearertest.Key{Method: jwt.SigningMethodNone}, nil, nil))
	f.Add("e30.e30.e30")
	f.Fuzz(func(t *testing.T, raw string) {
		if token, err := v.Verify(t.Context(), raw); err == nil && token.Subject != "ann" {
			t.Fatalf("got %+v, want only tokens of the issuer", token)
		}
	})
}
