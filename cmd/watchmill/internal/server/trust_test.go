package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// signer is a certificate with its key.
type signer struct {
	*x509.Certificate
	key *ecdsa.PrivateKey
}

// signs makes a certificate of that name, which is valid since and for some time. A nil signer signs itself.
func (s *signer) signs(t *testing.T, name string, since, valid time.Duration) *signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-since), NotAfter: time.Now().Add(valid), IsCA: true, BasicConstraintsValid: true,
	}
	if s == nil {
		s = &signer{template, key}
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, s.Certificate, key.Public(), s.key)
	require.NoError(t, err)
	c, err := x509.ParseCertificate(signed)
	require.NoError(t, err)
	return &signer{c, key}
}

// A client that uses OpenSSL trusts only roots, and needs all certificates between one and the server's; some
// clients read the first certificate alone. A kubeconfig has the root first if the server knows it.
func TestWithRoot_HasTheRootFirstIfItIsKnown(t *testing.T) {
	const hour = time.Hour
	root, alone := (*signer)(nil).signs(t, "root", hour, hour), (*signer)(nil).signs(t, "alone", hour, hour).Certificate
	between := root.signs(t, "between", hour, hour)
	leaf, expired := between.signs(t, "leaf", hour, hour).Certificate, between.signs(t, "expired", hour, -time.Minute).Certificate
	backdated := between.signs(t, "backdated", hour+time.Minute, hour).Certificate // as some authorities do, for clocks that are slow
	none, system := x509.NewCertPool(), x509.NewCertPool()
	system.AddCert(root.Certificate)
	type certificates = []*x509.Certificate
	whole := certificates{root.Certificate, leaf, between.Certificate}
	for name, c := range map[string]struct {
		chain, others certificates
		system        *x509.CertPool
		want          certificates
	}{
		"signed by itself":      {certificates{alone}, nil, none, certificates{alone}},
		"in the chain":          {certificates{leaf, between.Certificate, root.Certificate}, nil, none, whole},
		"among others":          {certificates{leaf, between.Certificate}, certificates{alone, root.Certificate}, none, whole},
		"with one between":      {certificates{leaf}, certificates{between.Certificate, root.Certificate}, none, whole},
		"of the system":         {certificates{leaf, between.Certificate}, nil, system, whole},
		"of one that is older":  {certificates{backdated, between.Certificate}, nil, system, certificates{root.Certificate, backdated, between.Certificate}},
		"of one that has ended": {certificates{expired, between.Certificate}, nil, system, certificates{root.Certificate, expired, between.Certificate}},
	} {
		got, err := withRoot(c.chain, c.others, c.system)
		require.NoError(t, err, name)
		require.Equal(t, c.want, got, name)
	}
	chain := certificates{leaf, between.Certificate}
	got, err := withRoot(chain, certificates{alone}, none)
	require.ErrorContains(t, err, "unknown authority")
	require.Equal(t, chain, got)
}
