package bearer

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"

	"github.com/golang-jwt/jwt/v5"
)

// algorithms are the accepted signature algorithms. All are asymmetric: with HMAC, the public key could sign tokens.
func algorithms() []string {
	return slices.Concat(rsaAlgorithms(), []string{"ES256", "ES384", "ES512", "EdDSA"})
}

func rsaAlgorithms() []string { return []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"} }

// Bounds of a key set.
const (
	maxKeys    = 100
	minRSABits = 2048
	maxRSABits = 8192 // larger ones take too long
)

// key is a public key of the issuer.
type key struct {
	id         string // may be empty
	algorithms []string
	public     jwt.VerificationKey
}

// keySet has the keys of the issuer at one time. It never changes.
type keySet struct{ keys []key }

// fitting returns the keys that may have signed a token with an algorithm: those with an id, any if it is empty.
func (s *keySet) fitting(id, algorithm string) (fit jwt.VerificationKeySet) {
	for _, k := range s.keys {
		if (id == "" || k.id == id) && slices.Contains(k.algorithms, algorithm) {
			fit.Keys = append(fit.Keys, k.public)
		}
	}
	return fit
}

// jwk is a JSON Web Key.
type jwk struct {
	Type       string   `json:"kty"`
	ID         string   `json:"kid"`
	Use        string   `json:"use"`
	Operations []string `json:"key_ops"`
	Algorithm  string   `json:"alg"`
	Curve      string   `json:"crv"`
	N          string   `json:"n"`
	E          string   `json:"e"`
	X          string   `json:"x"`
	Y          string   `json:"y"`
}

// parseKeys reads a JSON Web Key Set. It skips keys that are not public keys for the accepted algorithms.
func parseKeys(data []byte) (*keySet, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(data, &set); err != nil {
		return nil, errors.New("the key set is not a JSON Web Key Set")
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("the key set has more than %d keys", maxKeys)
	}
	parsed := &keySet{}
	for _, raw := range set.Keys {
		var j jwk
		if json.Unmarshal(raw, &j) != nil || j.Use != "" && j.Use != "sig" ||
			len(j.Operations) > 0 && !slices.Contains(j.Operations, "verify") {
			continue
		}
		k := key{id: j.ID}
		if k.public, k.algorithms = j.public(); j.Algorithm != "" {
			k.algorithms = slices.DeleteFunc(k.algorithms, func(a string) bool { return a != j.Algorithm })
		}
		if len(k.algorithms) > 0 {
			parsed.keys = append(parsed.keys, k)
		}
	}
	if len(parsed.keys) == 0 {
		return nil, errors.New("the key set has no RSA, EC or Ed25519 key for signatures")
	}
	return parsed, nil
}

// public returns the public key and its algorithms, or none if the key is malformed or of another type.
func (j *jwk) public() (jwt.VerificationKey, []string) {
	switch j.Type {
	case "RSA":
		n, e := new(big.Int).SetBytes(bytesOf(j.N)), new(big.Int).SetBytes(bytesOf(j.E))
		if n.BitLen() < minRSABits || n.BitLen() > maxRSABits || e.BitLen() > 31 || e.Int64() < 3 || e.Bit(0) == 0 {
			return nil, nil
		}
		return &rsa.PublicKey{N: n, E: int(e.Int64())}, rsaAlgorithms()
	case "EC":
		curve, algorithm := curveOf(j.Curve)
		if curve == nil {
			return nil, nil
		}
		x, y := bytesOf(j.X), bytesOf(j.Y)
		if size := (curve.Params().BitSize + 7) / 8; len(x) != size || len(y) != size {
			return nil, nil
		}
		public, err := ecdsa.ParseUncompressedPublicKey(curve, slices.Concat([]byte{4}, x, y))
		if err != nil {
			return nil, nil
		}
		return public, []string{algorithm}
	case "OKP":
		if x := bytesOf(j.X); j.Curve == "Ed25519" && len(x) == ed25519.PublicKeySize {
			return ed25519.PublicKey(x), []string{"EdDSA"}
		}
	}
	return nil, nil
}

// curveOf returns a curve by its name, and the only algorithm that is for it; nil if there is none.
func curveOf(name string) (elliptic.Curve, string) {
	switch name {
	case "P-256":
		return elliptic.P256(), "ES256"
	case "P-384":
		return elliptic.P384(), "ES384"
	case "P-521":
		return elliptic.P521(), "ES512"
	}
	return nil, ""
}

// bytesOf decodes base64url; nil if s is anything else.
func bytesOf(s string) []byte {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return nil
	}
	return b
}
