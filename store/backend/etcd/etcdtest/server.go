package etcdtest

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"golang.org/x/crypto/bcrypt"
)

// startPatience is how long an etcd may take to be ready.
const startPatience = time.Minute

// Fast elections make the shortest lease one second, not two.
const (
	tickMillis     = 10
	electionMillis = 100
)

// Server is an etcd in the test's process: quick to start, and quick because it
// does not wait for the disk. It cannot crash; for that there is [Member].
type Server struct {
	// Endpoint is its address, as "127.0.0.1:34567".
	Endpoint string

	etcd *embed.Etcd
}

// Start starts a server of one member, without any keys, which is stopped when the
// test ends. Configure, if not nil, may change how.
func Start(t testing.TB, configure func(*embed.Config)) *Server {
	t.Helper()
	s, err := Run(t.TempDir(), configure)
	if err != nil {
		t.Fatalf("starting etcd: %v", err)
	}
	t.Cleanup(s.Close)
	return s
}

// Run is Start outside of tests: the server keeps its data in dir, and runs until it
// is closed.
func Run(dir string, configure func(*embed.Config)) (*Server, error) {
	local := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	cfg := embed.NewConfig()
	cfg.Dir = dir
	cfg.TickMs, cfg.ElectionMs = tickMillis, electionMillis
	cfg.UnsafeNoFsync = true
	cfg.BcryptCost = uint(bcrypt.MinCost) // a login takes seconds otherwise, with the race detector on a busy machine
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{local}, []url.URL{local}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{local}, []url.URL{local}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	if configure != nil {
		configure(cfg)
	}
	return start(cfg)
}

// Close stops the server.
func (s *Server) Close() { s.etcd.Close() }

func start(cfg *embed.Config) (*Server, error) {
	etcd, err := embed.StartEtcd(cfg)
	if err != nil {
		return nil, err
	}
	select {
	case <-etcd.Server.ReadyNotify():
		return &Server{Endpoint: etcd.Clients[0].Addr().String(), etcd: etcd}, nil
	case err = <-etcd.Err():
	case <-time.After(startPatience):
		err = fmt.Errorf("not ready within %v", startPatience)
	}
	etcd.Close()
	return nil, err
}

// Client returns a client of endpoints, for requests that a backend does not make. It
// is closed when the test ends.
func Client(t testing.TB, endpoints ...string) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, DialTimeout: startPatience, Logger: zap.NewNop()})
	if err != nil {
		t.Fatalf("connecting to %v: %v", endpoints, err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}
