package server

import (
	"crypto/x509"
	"log/slog"
	"slices"
	"time"
)

// trusted returns the certificates of a kubeconfig by which clients trust the server: the chain of --tls-cert, and
// the root that has signed it, which may be one of --client-ca or of the system. Clients in Go would trust the
// server's certificate by itself. Those that use OpenSSL, such as Python's, need the root, and Ruby's reads no
// other certificate than the first.
func (o *Options) trusted(log *slog.Logger, chain [][]byte) (all [][]byte, err error) {
	own, err := x509.ParseCertificates(slices.Concat(chain...))
	if err != nil {
		return nil, err // cannot happen: they have been parsed
	}
	var others []*x509.Certificate
	if o.ClientCAFile != "" {
		if others, err = readAuthorities("--client-ca", o.ClientCAFile); err != nil {
			return nil, err
		}
	}
	own, err = withRoot(own, others, nil)
	if err != nil {
		log.Warn("clients in other languages than Go refuse the certificate by the kubeconfig, which has no root for it; append the authority's certificate to the file of --tls-cert", "kubeconfig", o.Kubeconfig, "error", err)
	}
	for _, c := range own {
		all = append(all, c.Raw)
	}
	return all, nil
}

// withRoot returns a root, and the certificates of a chain and between both. The root is in the chain, among others,
// or in system, where nil means the system's. If there is none, it returns the chain with an error.
func withRoot(chain, others []*x509.Certificate, system *x509.CertPool) ([]*x509.Certificate, error) {
	if !slices.ContainsFunc(chain, isRoot) {
		path, err := pathToRoot(chain, others, system)
		if err != nil {
			return chain, err
		}
		path = slices.DeleteFunc(path, func(c *x509.Certificate) bool { return slices.ContainsFunc(chain, c.Equal) })
		chain = slices.Concat(chain, path)
	}
	first := slices.IndexFunc(chain, isRoot)
	if first < 0 {
		first = len(chain) - 1 // the system trusts it all the same
	}
	return slices.Concat(chain[first:first+1], chain[:first], chain[first+1:]), nil
}

// pathToRoot returns the certificates from a chain's first to a root, which is among others or in system.
func pathToRoot(chain, others []*x509.Certificate, system *x509.CertPool) ([]*x509.Certificate, error) {
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	for _, c := range slices.Concat(chain[1:], others) {
		if isRoot(c) {
			roots.AddCert(c)
		} else {
			between.AddCert(c)
		}
	}
	how := x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: validNear(time.Now(), chain[0])}
	paths, err := chain[0].Verify(how)
	if how.Roots = system; err != nil {
		paths, err = chain[0].Verify(how)
	}
	if err != nil {
		return nil, err
	}
	return paths[0], nil
}

// validNear returns now, or the time nearest to it at which a certificate is valid: there is another warning about one
// that is not valid now. Its authority may not have been valid yet when it began, since some are backdated.
func validNear(now time.Time, c *x509.Certificate) time.Time {
	switch {
	case now.Before(c.NotBefore):
		return c.NotBefore
	case now.After(c.NotAfter):
		return c.NotAfter
	}
	return now
}

// isRoot reports whether a certificate is signed by itself.
func isRoot(c *x509.Certificate) bool {
	return c.CheckSignature(c.SignatureAlgorithm, c.RawTBSCertificate, c.Signature) == nil
}
