package oauth_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/downstream/oauth"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// keyFile writes a key in PEM.
func keyFile(t *testing.T, kind string, key crypto.Signer) string {
	t.Helper()
	var der []byte
	var err error
	switch kind {
	case "EC PRIVATE KEY":
		der, err = x509.MarshalECPrivateKey(key.(*ecdsa.PrivateKey))
	case "RSA PRIVATE KEY":
		der = x509.MarshalPKCS1PrivateKey(key.(*rsa.PrivateKey))
	default:
		der, err = x509.MarshalPKCS8PrivateKey(key)
	}
	if err != nil {
		t.Fatal(err)
	}
	return textFile(t, string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})))
}

func textFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func ellipticKey(t *testing.T, curve elliptic.Curve) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// A client with a private key signs each request to its authorization server, in every flow, and sends no secret.
func TestPrivateKey(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		kind string
		key  crypto.Signer
		id   string
	}{
		{"PRIVATE KEY", ellipticKey(t, elliptic.P256()), "k1"}, {"EC PRIVATE KEY", ellipticKey(t, elliptic.P384()), ""},
		{"PRIVATE KEY", ellipticKey(t, elliptic.P521()), ""}, {"RSA PRIVATE KEY", rsaKey, ""}, {"PRIVATE KEY", rsaKey, "k2"}, {"PRIVATE KEY", edwards, ""},
	} {
		for _, flow := range []string{oauth.FlowClientCredentials, oauth.FlowCode} {
			o := &mcptest.OAuth{Keys: map[string]crypto.PublicKey{"robot": c.key.Public()}, KeyID: c.id}
			s, store := serve(t, o), oauth.NewStore(t.TempDir())
			s.Config = oauth.Config{ClientID: "robot", PrivateKey: keyFile(t, c.kind, c.key), KeyID: c.id, Flow: flow}
			logIn(t, s, store)
			caller := open(t, s, store, io.Discard)
			caller.must()
			o.Forget(false)
			caller.must() // with another token
			if known, err := oauth.Logout(t.Context(), s, store); !known || err != nil || o.Count("revoke") == 0 {
				t.Errorf("%s %T: logging out: got %v, %v and %d revocations", flow, c.key, known, err, o.Count("revoke"))
			}
		}
	}
}

// What is wrong with a key is said without the key, and without what was signed.
func TestPrivateKey_Wrong(t *testing.T) {
	right, other := ellipticKey(t, elliptic.P256()), keyFile(t, "PRIVATE KEY", ellipticKey(t, elliptic.P256()))
	good := keyFile(t, "PRIVATE KEY", right)
	text, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ file, want string }{
		"no file":       {filepath.Join(t.TempDir(), "none"), "no such file"},
		"a folder":      {t.TempDir(), "it is no file"},
		"too long":      {textFile(t, strings.Repeat("x", 1<<20)), "it is no file of at most"},
		"no PEM":        {textFile(t, "s3cret"), "it is not PEM"},
		"encrypted":     {textFile(t, strings.ReplaceAll(string(text), "PRIVATE", "ENCRYPTED PRIVATE")), "unencrypted"},
		"of another":    {textFile(t, strings.ReplaceAll(string(text), "PRIVATE", "RSA PRIVATE")), "is not valid"},
		"of P-224":      {keyFile(t, "PRIVATE KEY", ellipticKey(t, elliptic.P224())), "P-256"},
		"not the right": {other, "refuses: invalid_client"},
	} {
		o := &mcptest.OAuth{Keys: map[string]crypto.PublicKey{"robot": right.Public()}}
		s := serve(t, o)
		s.Config = oauth.Config{ClientID: "robot", PrivateKey: c.file, Flow: oauth.FlowClientCredentials}
		_, err := oauth.Login(t.Context(), s, nil, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "eyJ") || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: got %v, want an error with %q", name, err, c.want)
		}
		open(t, s, oauth.Store{}, io.Discard).refused("check the client_id, client_secret or private_key")
	}
}
