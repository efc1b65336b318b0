package etcd_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/backendtest"
	"github.com/watchmill/watchmill/store/backend/etcd"
	"github.com/watchmill/watchmill/store/backend/etcd/etcdtest"
	"github.com/watchmill/watchmill/usercode"
)

func TestNew_RefusesAConfigThatCannotBe(t *testing.T) {
	good := etcd.Config{Prefix: "/shop/pods", Schema: backendtest.Schema(), Endpoints: []string{"127.0.0.1:1"}}
	for field, change := range map[string]func(*etcd.Config){
		"Prefix is empty":                         func(c *etcd.Config) { c.Prefix = "" },
		"Prefix ends with a slash":                func(c *etcd.Config) { c.Prefix = "/" },
		"Prefix is not a path":                    func(c *etcd.Config) { c.Prefix = "/shop//pods" },
		"Prefix is not valid UTF-8":               func(c *etcd.Config) { c.Prefix = "\xff" },
		"Schema has functions missing":            func(c *etcd.Config) { c.Schema = store.Schema{} },
		"Endpoints is empty":                      func(c *etcd.Config) { c.Endpoints = nil },
		"Client is given together with Endpoints": func(c *etcd.Config) { c.Client = &clientv3.Client{} },
		"Client is given together with Endpoints, TLS, Username or Password": func(c *etcd.Config) {
			c.Client, c.Endpoints, c.Password = &clientv3.Client{}, nil, "a"
		},
		"Username and Password are not given": func(c *etcd.Config) { c.Username = "alice" },
		"Username and Password":               func(c *etcd.Config) { c.Password = "a" },
		"OnUndecodable is 7":                  func(c *etcd.Config) { c.OnUndecodable = 7 },
		"Buffer is negative":                  func(c *etcd.Config) { c.Buffer.Events = -1 },
		"ProgressEvery is negative":           func(c *etcd.Config) { c.ProgressEvery = -1 },
		"RequestTimeout is negative":          func(c *etcd.Config) { c.RequestTimeout = -1 },
		"LeasePool is negative":               func(c *etcd.Config) { c.LeasePool = -1 },
	} {
		bad := good
		change(&bad)
		_, err := etcd.New(context.Background(), bad)
		require.ErrorIs(t, err, usercode.ErrConfig)
		require.ErrorContains(t, err, ": "+field)
	}
}

func TestNew_FailsIfNoMemberAnswers(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	_, err := etcd.New(ctx, etcd.Config{Prefix: "/p", Schema: backendtest.Schema(), Endpoints: []string{"127.0.0.1:1"}})
	require.Error(t, err)
	require.True(t, backend.Retryable(err) || ctx.Err() != nil, "%v", err)
}

// New ends with its context even while it logs in, which the client does by itself.
func TestNew_EndsWithItsContext(t *testing.T) {
	f := newFixture(t)
	f.proxy.BlackHole()
	gone := errors.New("the user has gone")
	for user, password := range map[string]string{"": "", "alice": "a"} {
		for _, endpoint := range []string{f.proxy.Endpoint, "127.0.0.1:1"} { // one does not answer, the other refuses
			ctx, cancel := context.WithCancelCause(f.ctx)
			timer := time.AfterFunc(50*time.Millisecond, func() { cancel(gone) })
			_, err := etcd.New(ctx, etcd.Config{
				Prefix: f.cfg.Prefix, Schema: backendtest.Schema(), Endpoints: []string{endpoint}, Username: user, Password: password,
			})
			require.ErrorIs(t, err, gone)
			timer.Stop()
		}
	}
}

// One machine that is switched off keeps no program from the members that are left.
func TestNew_WithAMemberThatDoesNotAnswer(t *testing.T) {
	f := newFixture(t)
	f.proxy.BlackHole()
	var reported []error
	b, err := open(f.ctx, etcd.Config{
		Prefix: f.cfg.Prefix, Schema: backendtest.Schema(), RequestTimeout: 15 * time.Second,
		Endpoints: []string{f.proxy.Endpoint, f.server.Endpoint},
		OnError:   func(err error) { reported = append(reported, err) },
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, b.Close()) }()
	require.Len(t, reported, 1)
	require.ErrorIs(t, reported[0], backend.ErrUnavailable)
	require.ErrorContains(t, reported[0], f.proxy.Endpoint)

	info, err := b.Info(f.ctx)
	require.NoError(t, err)
	require.Len(t, info.Members, 2)
	require.Equal(t, f.proxy.Endpoint, info.Members[0].Endpoint)
	require.ErrorIs(t, info.Members[0].Err, backend.ErrUnavailable)
	require.Equal(t, f.server.Endpoint, info.Members[1].Endpoint)
	require.NoError(t, info.Members[1].Err)
}

func TestNew_LeavesAGivenClientOpen(t *testing.T) {
	f := newFixture(t)
	b, err := open(f.ctx, etcd.Config{Prefix: "/p", Schema: backendtest.Schema(), Client: f.raw})
	require.NoError(t, err)
	require.NoError(t, b.Close())
	_, err = f.raw.Get(f.ctx, "a")
	require.NoError(t, err)
}

func TestNew_OverTLS(t *testing.T) {
	dir := t.TempDir()
	server := etcdtest.Start(t, func(c *embed.Config) {
		secure := url.URL{Scheme: "https", Host: "127.0.0.1:0"}
		c.Dir, c.ClientAutoTLS = dir, true
		c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{secure}, []url.URL{secure}
	})
	certificate, err := os.ReadFile(filepath.Join(dir, "fixtures", "client", "cert.pem"))
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(certificate))
	cfg := etcd.Config{Prefix: "/p", Schema: backendtest.Schema(), Endpoints: []string{server.Endpoint}}
	cfg.TLS = &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"}
	b, err := open(t.Context(), cfg)
	require.NoError(t, err)
	_, err = b.Put(context.Background(), draft("a", "1"), nil, backend.PutOptions{})
	require.NoError(t, err)
	require.NoError(t, b.Close())

	cfg.TLS = &tls.Config{RootCAs: x509.NewCertPool()}
	_, err = etcd.New(context.Background(), cfg)
	require.ErrorIs(t, err, backend.ErrUnavailable, "a server that cannot prove itself is not talked to")
	require.ErrorContains(t, err, "certificate", "the error says why")
}

// The endpoints of two clusters would be used in turns.
func TestNew_RefusesTheEndpointsOfSeveralClusters(t *testing.T) {
	other := etcdtest.Start(t, func(c *embed.Config) { c.InitialClusterToken = "other" })
	cfg := etcd.Config{Prefix: "/p", Schema: backendtest.Schema(), Endpoints: []string{etcdtest.Start(t, nil).Endpoint, other.Endpoint}}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var err error
	for wrong := (*usercode.ConfigError)(nil); !errors.As(err, &wrong) && ctx.Err() == nil; { // both answer in time
		var b *etcd.Backend
		if b, err = open(ctx, cfg); err == nil {
			require.NoError(t, b.Close())
		}
	}
	require.ErrorContains(t, err, "Endpoints lead to several clusters")
}

func TestInfo_IsWhatTheMembersSay(t *testing.T) {
	f := newFixture(t)
	rev := f.create("a", "1").Revision
	f.cfg.Endpoints = []string{f.server.Endpoint}
	info, err := f.open().Info(f.ctx)
	require.NoError(t, err)
	require.NotZero(t, info.Cluster)
	require.Len(t, info.Members, 1)
	m := info.Members[0]
	require.NoError(t, m.Err)
	require.GreaterOrEqual(t, m.Revision, rev)
	require.NotEmpty(t, m.Version)
	require.NotZero(t, m.Size)
	require.Empty(t, m.Alarms)
}

// A database that is full takes no writes, but can be read.
func TestPut_IntoAFullDatabase(t *testing.T) {
	server := etcdtest.Start(t, func(c *embed.Config) { c.QuotaBackendBytes = 4 << 20 })
	var reported error
	cfg := etcd.Config{Prefix: "/p", Schema: backendtest.Schema(), Endpoints: []string{server.Endpoint}}
	cfg.OnError = func(err error) { reported = err }
	b, err := open(t.Context(), cfg)
	require.NoError(t, err)
	defer func() { require.NoError(t, b.Close()) }()
	text := string(make([]byte, 150<<10)) // some 900 kB, as JSON
	for i := 0; err == nil; i++ {
		require.Less(t, i, 100)
		_, err = b.Put(context.Background(), draft("a"+string(rune('a'+i)), text), nil, backend.PutOptions{})
	}
	require.ErrorIs(t, err, backend.ErrFull)
	require.ErrorContains(t, err, "disarm the alarm", "or no write is done, even if there is space again")
	require.False(t, backend.Uncertain(err))
	_, err = b.Get(context.Background(), "aa")
	require.NoError(t, err)

	other, err := open(t.Context(), cfg)
	require.NoError(t, err)
	require.NoError(t, other.Close())
	require.Error(t, reported, "it is told when a backend is opened")
}
