package server

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/serve"
)

func TestFlags_SetEachOption(t *testing.T) {
	ttl, every, perUser, perAddress := time.Minute, 15*time.Minute, 3, 9
	flags := Flags{
		Listen: "listen", CRD: []string{"crd"}, AllowCRDs: true, CoreKinds: true, EventTTL: &ttl, GarbageCollector: true, Data: "data", Snapshot: "snapshot", SnapshotEvery: &every,
		Upstream: "upstream", UpstreamTokenFile: "upstream-token", Kubeconfig: "kubeconfig", TokenFile: "tokens",
		TLSCert: "cert", TLSKey: "key", ClientCA: "ca", AuditLog: "audit", Metrics: true, Compress: true,
		MaxReads: 4, MaxWrites: 5, MaxWatches: 6, MaxWatchesPerUser: &perUser, MaxConnectionsPerAddress: &perAddress,
		ShutdownDelay: 7 * time.Second, DrainWatches: 8 * time.Second, Origin: []string{"origin"}, Host: []string{"host"},
	}
	out, log, storages := &bytes.Buffer{}, &bytes.Buffer{}, Storages{"tape": nil}
	got := flags.Options(storages, out, log)
	require.Same(t, out, got.Out)
	require.Same(t, log, got.Log)
	got.Out, got.Log = nil, nil
	require.Equal(t, Options{
		Listen: "listen", CRDs: []string{"crd"}, AllowCRDs: true, CoreKinds: true, EventTTL: ttl, GarbageCollector: true, Data: "data", Storages: storages, Snapshot: "snapshot", SnapshotEvery: every,
		Upstream: "upstream", UpstreamTokenFile: "upstream-token", Kubeconfig: "kubeconfig", TokenFile: "tokens",
		CertFile: "cert", KeyFile: "key", ClientCAFile: "ca", AuditLog: "audit", Metrics: true, CompressAbove: compressAbove,
		Limits: serve.Limits{
			Reads: 4, Writes: 5, Watches: 6, WatchesPerUser: perUser, ConnectionsPerAddress: perAddress,
			ShutdownDelay: 7 * time.Second, DrainWatches: 8 * time.Second,
		},
		Origins: []string{"origin"}, Hosts: []string{"host"},
	}, got)
	require.Zero(t, (&Flags{}).Options(nil, nil, nil).CompressAbove)
}

func TestFlags_OfSeveralValuesAreGivenAtOnceOrOneByOne(t *testing.T) {
	var flags Flags
	parser, err := kong.New(&flags)
	require.NoError(t, err)
	_, err = parser.Parse([]string{"--host=a,b", "--host", "c", `--crd=one\,file,another`})
	require.NoError(t, err)
	opts := flags.Options(nil, nil, nil)
	require.Equal(t, []string{"a", "b", "c"}, opts.Hosts)
	require.Equal(t, []string{"one,file", "another"}, opts.CRDs)
	require.Empty(t, opts.Origins)
}

func TestFlags_ValidateLimitsThatAreAsLowAsTheyMayBe(t *testing.T) {
	one := 1
	flags := Flags{MaxReads: 1, MaxWrites: 1, MaxWatches: 1, MaxWatchesPerUser: &one, MaxConnectionsPerAddress: &one}
	require.NoError(t, flags.Validate())
}

// A user's groups are what a program that permits less goes by.
func TestTokens_HaveUsersWithTheirGroups(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	require.NoError(t, os.WriteFile(file, []byte("# users\nfirst, alice, 17, \"admins,users\"\nsecond,bob,18,\nthird,carol,19\nfourth,dave\n"), 0o600))
	users, first, err := readTokens(file)
	require.NoError(t, err)
	require.Equal(t, "first", first)
	require.Equal(t, map[string]serve.User{
		"first": {Name: "alice", UID: "17", Groups: []string{"admins", "users"}}, "second": {Name: "bob", UID: "18"}, "third": {Name: "carol", UID: "19"}, "fourth": {Name: "dave"},
	}, users)
}
