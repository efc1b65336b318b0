package interop_test

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
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// authority signs certificates, which it keeps in files of a folder.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	// file has the authority's own certificate.
	file string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir()}
	template := certificate("authority")
	template.IsCA, template.KeyUsage = true, x509.KeyUsageCertSign
	a.key = newKey(t)
	a.cert, a.file = a.sign(t, template, template, a.key)
	return a
}

// server returns the files of a certificate for servers on this machine, and of its key.
func (a *authority) server(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	template := certificate("server")
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	return a.issue(t, template)
}

// client returns the files of a certificate for a user, and of its key.
func (a *authority) client(t *testing.T, user string) (certFile, keyFile string) {
	t.Helper()
	template := certificate(user)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.issue(t, template)
}

// issue makes a key, and signs the certificate for it.
func (a *authority) issue(t *testing.T, template *x509.Certificate) (certFile, keyFile string) {
	t.Helper()
	key := newKey(t)
	text, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	_, certFile = a.sign(t, template, a.cert, key)
	return certFile, a.write(t, template.Subject.CommonName+".key", "PRIVATE KEY", text)
}

// sign signs the certificate of a key, in the name of parent.
func (a *authority) sign(t *testing.T, template, parent *x509.Certificate, key *ecdsa.PrivateKey) (*x509.Certificate, string) {
	t.Helper()
	text, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, a.key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(text)
	require.NoError(t, err)
	return cert, a.write(t, template.Subject.CommonName+".crt", "CERTIFICATE", text)
}

// write writes a file in PEM, and returns its path.
func (a *authority) write(t *testing.T, name, kind string, text []byte) string {
	t.Helper()
	path := filepath.Join(a.dir, name)
	require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: text}), 0o600))
	return path
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return key
}

// certificate is what a certificate of that name is made of.
func certificate(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name, Organization: []string{"tests"}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature,
	}
}
