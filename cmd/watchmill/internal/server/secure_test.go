package server

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/serve"
)

// Two authorities may have signed a certificate, by an intermediate one that both have signed. While its connection
// lasts, one of them is withdrawn, and the certificate that the other has given expires.
func TestAuthorities_TrustAndValidityAreThoseOfOneChain(t *testing.T) {
	now := time.Now()
	client := &x509.Certificate{Subject: pkix.Name{CommonName: "alice"}, NotAfter: now.Add(time.Hour)}
	root := func(name string) *x509.Certificate {
		return &x509.Certificate{Raw: []byte(name), NotAfter: now.Add(time.Hour)}
	}
	expired := &x509.Certificate{NotAfter: now.Add(-time.Minute)}
	trusted := &authorities{known: map[string]bool{"trusted": true}}
	for name, c := range map[string]struct {
		chains [][]*x509.Certificate
		want   error
	}{
		"trusted":                    {[][]*x509.Certificate{{client, root("trusted")}}, nil},
		"either":                     {[][]*x509.Certificate{{client, root("withdrawn")}, {client, root("trusted")}}, nil},
		"withdrawn":                  {[][]*x509.Certificate{{client, root("withdrawn")}}, serve.ErrUnauthenticated},
		"expired":                    {[][]*x509.Certificate{{client, expired, root("trusted")}}, serve.ErrUnauthenticated},
		"one withdrawn, one expired": {[][]*x509.Certificate{{client, root("withdrawn")}, {client, expired, root("trusted")}}, serve.ErrUnauthenticated},
		"no certificate of a client": {nil, serve.ErrUnauthenticated},
	} {
		u, err := trusted.user(&http.Request{TLS: &tls.ConnectionState{VerifiedChains: c.chains}})
		require.ErrorIs(t, err, c.want, name)
		require.Equal(t, c.want == nil, u.Name == "alice", name)
	}
	_, err := trusted.user(&http.Request{})
	require.ErrorIs(t, err, serve.ErrUnauthenticated, "without TLS")
}
