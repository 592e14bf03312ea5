package clustertest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Authority signs certificates of servers and clients on 127.0.0.1.
type Authority struct {
	CA   string // its own certificate, a PEM file
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority returns an authority that writes its files to a folder.
func NewAuthority(dir string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	a := &Authority{dir: dir, key: key, cert: &x509.Certificate{
		Subject: pkix.Name{CommonName: rand.Text()}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}}
	a.CA, _, err = a.write(a.cert, key)
	return a, err
}

// Issue writes a certificate that is valid until a time, and its key. It returns their paths.
func (a *Authority) Issue(until time.Time) (cert, key string, err error) {
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", err
	}
	return a.write(&x509.Certificate{
		Subject: pkix.Name{CommonName: "nexus"}, NotAfter: until, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, secret)
}

// write signs a certificate, and writes it and its key.
func (a *Authority) write(c *x509.Certificate, secret *ecdsa.PrivateKey) (cert, key string, err error) {
	c.SerialNumber = big.NewInt(time.Now().UnixNano())
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, &secret.PublicKey, a.key)
	if err != nil {
		return "", "", err
	}
	secretDER, err := x509.MarshalECPrivateKey(secret)
	if err != nil {
		return "", "", err
	}
	name := filepath.Join(a.dir, rand.Text())
	cert, key = name+".crt", name+".key"
	if err := os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		return "", "", err
	}
	return cert, key, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secretDER}), 0o600)
}
