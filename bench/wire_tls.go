package bench

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"time"
)

// identity is a server's certificate, and what its clients trust: roots has that in PEM.
type identity struct {
	server, client *tls.Config
	roots          []byte
}

// newIdentity makes a certificate for loopback that is signed by itself, with a key of P-256
// as most servers have.
func newIdentity() (*identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(leaf)
	return &identity{
		server: &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}},
		client: &tls.Config{RootCAs: trusted},
		roots:  pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
	}, nil
}

// overTLS returns a function that opens a contender's server and listens, with connections
// that are encrypted.
func overTLS(c Contender) func(context.Context) (*wire, error) {
	return func(ctx context.Context) (*wire, error) {
		own, err := newIdentity()
		if err != nil {
			return nil, err
		}
		server, err := c.Server(ctx)
		if err != nil {
			return nil, err
		}
		return listen(ctx, server, own)
	}
}
