package etcd_test

import (
	"errors"
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
)

// newAuthFixture returns a fixture without a backend, of a cluster in which alice may read and write below /pods. Logins last
// a second. Its raw client is root's.
func newAuthFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{TB: t, ctx: t.Context(), server: etcdtest.Start(t, func(c *embed.Config) { c.AuthTokenTTL = 1 })}
	f.proxy = etcdtest.StartProxy(t, f.server.Endpoint)
	raw := etcdtest.Client(t, f.server.Endpoint)
	for _, step := range []func() error{
		func() error { _, err := raw.UserAdd(f.ctx, "root", "r"); return err },
		func() error { _, err := raw.UserGrantRole(f.ctx, "root", "root"); return err },
		func() error { _, err := raw.RoleAdd(f.ctx, "pods"); return err },
		func() error { _, err := raw.UserAdd(f.ctx, "alice", "a"); return err },
		func() error { _, err := raw.UserGrantRole(f.ctx, "alice", "pods"); return err },
		func() error { _, err := raw.AuthEnable(f.ctx); return err },
	} {
		require.NoError(t, step())
	}
	var err error
	f.raw, err = clientv3.New(clientv3.Config{Endpoints: []string{f.server.Endpoint}, Username: "root", Password: "r"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.raw.Close() })
	f.grant("/pods!", "/pods0")
	f.cfg = etcd.Config{
		Prefix: "/pods", Schema: backendtest.Schema(), Endpoints: []string{f.proxy.Endpoint}, ProgressEvery: time.Minute,
		Username: "alice", Password: "a",
	}
	return f
}

// grant lets alice read and write a range, or a key if end is "".
func (f *fixture) grant(start, end string) {
	f.Helper()
	_, err := f.raw.RoleGrantPermission(f.ctx, "pods", start, end, clientv3.PermissionType(clientv3.PermReadWrite))
	require.NoError(f, err)
}

func (f *fixture) revoke(start, end string) {
	f.Helper()
	_, err := f.raw.RoleRevokePermission(f.ctx, "pods", start, end)
	require.NoError(f, err)
}

func TestNew_WithAPassword(t *testing.T) {
	f := newAuthFixture(t)
	f.Backend = f.open()
	_, err := f.Put(f.ctx, draft("a", "1"), nil, backend.PutOptions{TTL: time.Minute})
	require.NoError(t, err)

	f.cfg.Prefix = "/others"
	_, err = open(f.ctx, f.cfg)
	require.ErrorIs(t, err, backend.ErrDenied)
	f.cfg.Prefix, f.cfg.Password = "/pods", "wrong"
	_, err = open(f.ctx, f.cfg)
	require.ErrorIs(t, err, backend.ErrDenied)
}

// A user may lose a permission and get it again. What it may not do is not done, and a watch that begins or is resumed
// meanwhile is denied.
func TestBackend_WhileAPermissionIsRevoked(t *testing.T) {
	f := newAuthFixture(t)
	f.grant("/pods!//compacted", "")
	f.Backend = f.open()
	o := f.create("a", "1")
	w := f.watch(o.Revision, "")

	f.revoke("/pods!", "/pods0")
	_, err := f.Put(f.ctx, draft("a", "2"), o, backend.PutOptions{})
	require.ErrorIs(t, err, backend.ErrDenied)
	require.False(t, backend.Uncertain(err))
	_, err = f.Get(f.ctx, "a")
	require.ErrorIs(t, err, backend.ErrDenied)
	_, err = f.Watch(f.ctx, backend.WatchOptions{Notify: func() {}})
	require.ErrorIs(t, err, backend.ErrDenied)
	f.proxy.Cut()
	f.proxy.Heal()
	_, err = w.end()
	require.ErrorIs(t, err, backend.ErrDenied)

	f.grant("/pods!", "/pods0")
	w = f.watch(o.Revision, "")
	o, err = f.Put(f.ctx, draft("a", "2"), o, backend.PutOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{"MODIFIED a=2 was 1"}, w.read(o.Revision))
}

// The client logs in again when a login has ended, for calls and for a watch that is resumed.
func TestBackend_GoesOnAfterItsLoginHasEnded(t *testing.T) {
	f := newAuthFixture(t)
	f.Backend = f.open()
	w := f.watch(f.create("a", "1").Revision, "")
	for _, key := range []string{"b", "c"} {
		wait(3 * time.Second) // etcd looks once a second for logins that have ended
		f.proxy.Cut()
		f.proxy.Heal()
		o, err := f.Put(f.ctx, draft(key, "1"), nil, backend.PutOptions{})
		for backend.Uncertain(err) || errors.Is(err, backend.ErrUnavailable) { // it went out on the connection that was cut
			if o, err = f.Get(f.ctx, key); errors.Is(err, store.ErrNotFound) {
				o, err = f.Put(f.ctx, draft(key, "1"), nil, backend.PutOptions{})
			}
		}
		require.NoError(t, err)
		require.Equal(t, []string{"ADDED " + key + "=1 was -"}, w.read(o.Revision))
	}
}
