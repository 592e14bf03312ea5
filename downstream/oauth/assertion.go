package oauth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

const (
	maxKey        = 64 << 10 // bytes
	assertionTime = time.Minute
	minRSA        = 2048 // bits
)

// sign adds to a form what authenticates the client of t without a secret: a statement by the client for the
// authorization server alone, signed with its private key (RFC 7523). It changes nothing if there is no key.
func (t *Token) sign(s Server, form url.Values) error {
	if s.PrivateKey == "" || !t.knows(s) {
		return nil
	}
	key, method, err := readKey(s.PrivateKey)
	if err != nil {
		return &refusal{fmt.Sprintf("the private key %s cannot be used: %v", s.PrivateKey, err)}
	}
	now := time.Now()
	claims := jwt.NewWithClaims(method, jwt.RegisteredClaims{
		Issuer: t.Client.ID, Subject: t.Client.ID, Audience: jwt.ClaimStrings{t.Issuer}, ID: rand.Text(),
		IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(assertionTime)),
	})
	if s.KeyID != "" {
		claims.Header["kid"] = s.KeyID
	}
	statement, err := claims.SignedString(key)
	if err != nil {
		return fmt.Errorf("signing with the private key %s: %w", s.PrivateKey, err)
	}
	form.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
	form.Set("client_assertion", statement)
	return nil
}

// CheckKey returns an error if a file has no private key that the router can sign with.
func CheckKey(file string) error {
	_, _, err := readKey(file)
	return err
}

// readKey reads a private key in PEM and returns the algorithm that fits it. The error does not quote the file.
func readKey(file string) (crypto.Signer, jwt.SigningMethod, error) {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return nil, nil, errors.Unwrap(err) // it names the file
	case !info.Mode().IsRegular() || info.Size() > maxKey:
		return nil, nil, fmt.Errorf("it is no file of at most %d bytes", maxKey)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, errors.Unwrap(err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, nil, errors.New("it is not PEM")
	}
	var key any
	switch block.Type {
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	default:
		return nil, nil, errors.New("want an unencrypted private key")
	}
	if err != nil {
		return nil, nil, errors.New("its private key is not valid")
	}
	switch key := key.(type) {
	case ed25519.PrivateKey:
		return key, jwt.SigningMethodEdDSA, nil
	case *rsa.PrivateKey:
		if key.N.BitLen() >= minRSA {
			return key, jwt.SigningMethodRS256, nil
		}
	case *ecdsa.PrivateKey:
		methods := []*jwt.SigningMethodECDSA{jwt.SigningMethodES256, jwt.SigningMethodES384, jwt.SigningMethodES512}
		for _, method := range methods {
			if method.CurveBits == key.Params().BitSize {
				return key, method, nil
			}
		}
	}
	return nil, nil, fmt.Errorf("want a key of the curve P-256, P-384, P-521 or Ed25519, or of RSA with at least %d bits", minRSA)
}
