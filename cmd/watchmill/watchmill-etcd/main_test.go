package main

import (
	"bytes"
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/goleak"

	"github.com/watchmill/watchmill/store/backend/etcd/etcdtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// command runs the program and returns what it wrote and its exit status.
func command(ctx context.Context, args ...string) (stdout, stderr string, status int) {
	var out, errs bytes.Buffer
	status = run(ctx, args, &out, &errs)
	return out.String(), errs.String(), status
}

// history is a file of changes that end with one object.
func history(t *testing.T, more ...string) string {
	path := filepath.Join(t.TempDir(), "history")
	lines := append([]string{`{"t":1,"op":"put","key":"a/b.go","version":"1"}`}, more...)
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600))
	return path
}

func TestReplay_InMemoryAsWatchmillDoes(t *testing.T) {
	out, errs, status := command(t.Context(), "replay", "--watchers=3", history(t))
	require.Zero(t, status, out+errs)
	require.Contains(t, out, "equal      3 of 3 watchers have the 1 objects")
}

// The same trace has the same end over etcd, and storage that is not empty is refused.
func TestReplay_OverEtcdEndsAsInMemory(t *testing.T) {
	file := history(t, `{"t":2,"op":"put","key":"c.go","version":"1"}`,
		`{"t":3,"op":"put","key":"a/b.go","version":"2"}`, `{"t":4,"op":"delete","key":"c.go"}`)
	etcd := "etcd:" + etcdtest.Start(t, nil).Endpoint + "/replayed"
	for _, place := range []string{"memory", etcd} {
		state := filepath.Join(t.TempDir(), "state.tsv")
		out, errs, status := command(t.Context(), "replay", "--watchers=3", "--backend="+place, "--state="+state, file)
		require.Zero(t, status, out+errs)
		require.Contains(t, out, "equal      3 of 3 watchers have the 1 objects")
		got, err := os.ReadFile(state)
		require.NoError(t, err)
		require.Equal(t, "a/b.go\t2\n", string(got), place)
	}
	_, errs, status := command(t.Context(), "replay", "--backend="+etcd, file)
	require.Equal(t, exitUsage, status, errs)
	require.Contains(t, errs, "not empty")
}

// A cluster in production has TLS, and may know its users by their certificates.
func TestReplay_OverTLS(t *testing.T) {
	dir := t.TempDir()
	server := etcdtest.Start(t, func(c *embed.Config) {
		secure := url.URL{Scheme: "https", Host: "127.0.0.1:0"}
		c.Dir, c.ClientAutoTLS = dir, true
		c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{secure}, []url.URL{secure}
	})
	cert, key := filepath.Join(dir, "fixtures", "client", "cert.pem"), filepath.Join(dir, "fixtures", "client", "key.pem")
	out, errs, status := command(t.Context(), "replay", "--watchers=3", "--backend=etcd:"+server.Endpoint+"/x", "--etcd-ca", cert, "--etcd-cert", cert, "--etcd-key", key, history(t))
	require.Zero(t, status, out+errs)
	require.Contains(t, out, "equal      3 of 3 watchers have the 1 objects")
}

// secret is a file with a text.
func secret(t *testing.T, text string) string {
	path := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// A cluster may know its users by passwords. Of its members one is enough.
func TestReplay_WithAPasswordAndSeveralMembers(t *testing.T) {
	server := etcdtest.Start(t, nil)
	client := etcdtest.Client(t, server.Endpoint)
	_, err := client.UserAdd(t.Context(), "root", "r")
	require.NoError(t, err)
	_, err = client.UserGrantRole(t.Context(), "root", "root")
	require.NoError(t, err)
	_, err = client.AuthEnable(t.Context())
	require.NoError(t, err)
	replay := func(password string) (out string, status int) {
		out, errs, status := command(t.Context(), "replay", "--watchers=3", "--backend=etcd:127.0.0.1:1,"+server.Endpoint+"/x",
			"--etcd-user=root", "--etcd-password-file="+secret(t, password), history(t))
		return out + errs, status
	}
	out, status := replay("r\n")
	require.Zero(t, status, out)
	require.Contains(t, out, "equal      3 of 3 watchers have the 1 objects")
	out, status = replay("guess")
	require.Equal(t, exitFailed, status)
	require.Contains(t, out, "denied")
	require.NotContains(t, out, "guess")
}

func TestReplay_SaysWhyThereIsNoEtcd(t *testing.T) {
	_, errs, status := command(t.Context(), "replay", "--backend=etcd:127.0.0.1:1/demo", history(t))
	require.Equal(t, exitFailed, status)
	require.Contains(t, errs, "127.0.0.1:1")
}

func TestReplay_WrongUsageExitsWithTwo(t *testing.T) {
	for mention, args := range map[string][]string{
		"no storage of that name": {"replay", "--backend=tape:0", "x"},
		"--backend is etcd:127.0.0.1:1/, which ends with a slash; give etcd:HOST:PORT[,HOST:PORT...][/PREFIX]": {"replay", "--backend=etcd:127.0.0.1:1/", history(t)},
		`--backend is etcd:hostonly/x, where "hostonly" is not a host and a port`:                              {"replay", "--backend=etcd:hostonly/x", history(t)},
		`where "" is not a host and a port`:                                                                    {"replay", "--backend=etcd:127.0.0.1:1,/x", history(t)},
		"--etcd-password-file cannot be used: open none":                                                       {"replay", "--backend=etcd:127.0.0.1:1", "--etcd-user=root", "--etcd-password-file=none", history(t)},
		"which has no password": {"replay", "--backend=etcd:127.0.0.1:1", "--etcd-user=root", "--etcd-password-file=" + secret(t, "\n"), history(t)},
		"--etcd-user and --etcd-password-file must be used together":                               {"replay", "--backend=etcd:127.0.0.1:1", "--etcd-user=root", history(t)},
		"--etcd-ca or --etcd-cert cannot be used: open none":                                       {"replay", "--backend=etcd:127.0.0.1:1", "--etcd-ca=none", history(t)},
		"--etcd-ca is for objects in etcd, and --backend is memory; give --backend etcd:HOST:PORT": {"replay", "--etcd-ca=none", history(t)},
		"--etcd-ca: is empty":                                                           {"replay", "--backend=etcd:127.0.0.1:1", "--etcd-ca=", history(t)},
		"--etcd-cert and --etcd-key must be used together":                              {"replay", "--backend=etcd:127.0.0.1:1", "--etcd-cert=none", history(t)},
		"unknown flag --fast\nRun watchmill-etcd replay --help to see what there is.\n": {"replay", "--fast", "x"},
		"Run watchmill-etcd --help to see":                                              {"fly"},
	} {
		_, errs, status := command(t.Context(), args...)
		require.Equal(t, exitUsage, status, errs)
		require.Contains(t, errs, mention)
	}
}

// full is an output on a full disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestVersion_NamesTheProgram(t *testing.T) {
	out, errs, status := command(t.Context(), "--version")
	require.Zero(t, status, errs)
	require.Regexp(t, `^watchmill-etcd \S+, go`, out)
}

func TestHelp_ThatCannotBeWrittenExitsWithOne(t *testing.T) {
	var errs bytes.Buffer
	require.Equal(t, exitFailed, run(t.Context(), []string{"replay", "--help"}, full{}, &errs))
	require.Equal(t, "watchmill-etcd: cannot write the help: no space left on device\n", errs.String())
}
