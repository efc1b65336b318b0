package main

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/filetest"
	"github.com/watchmill/watchmill/cmd/watchmill/internal/server"
)

// A server that goes on writing has snapshots, of which a file is made that another one serves. Clients
// of the first start over there: what they may have seen since is lost.
func TestServe_WritesSnapshotsOfTheFileThatItWrites(t *testing.T) {
	dir := t.TempDir()
	snapshot, restored := filepath.Join(dir, "snapshot"), filepath.Join(dir, "restored")
	require.NoError(t, os.WriteFile(snapshot+".0123abcd.tmp", []byte("half"), 0o600)) // of a process that was killed
	opts := server.Options{Data: "bolt:" + filepath.Join(dir, "data"), Snapshot: snapshot, SnapshotEvery: time.Second, Metrics: true}
	url, stop := serving(t, opts)
	code, created := call(t, "POST", url+inDefault, "", `{"metadata":{"name":"a"},"spec":{"size":3}}`)
	require.Equal(t, 201, code, created)
	var before os.FileInfo
	require.Eventually(t, func() (there bool) {
		var err error
		before, err = os.Stat(snapshot)
		return err == nil
	}, time.Minute, time.Millisecond)
	for range 2 { // the first may have been begun before the object was there
		require.Eventually(t, func() bool {
			now, err := os.Stat(snapshot)
			if err != nil || os.SameFile(before, now) {
				return false
			}
			before = now
			return true
		}, time.Minute, time.Millisecond, "another one takes its place")
	}
	code, lost := call(t, "POST", url+inDefault, "", `{"metadata":{"name":"b"},"spec":{"size":3}}`)
	require.Equal(t, 201, code, lost)
	metricsWith(t, url, "", "watchmill_snapshot_timestamp_seconds 1.")
	stop()
	require.Equal(t, []string{"data", "snapshot"}, filetest.Names(t, dir))

	out, errs, status := command(t.Context(), "store", "restore", snapshot, restored)
	require.Equal(t, exitOK, status, errs)
	require.Contains(t, out, "widgets.example.com")
	url, stop = serving(t, server.Options{Data: "bolt:" + restored})
	defer stop()
	code, found := call(t, "GET", url+inDefault+"/a", "", "")
	require.Equal(t, 200, code)
	require.Equal(t, created, found)
	code, expired := call(t, "GET", url+inDefault+"?watch=1&resourceVersion="+revisionOf(lost), "", "")
	require.Equal(t, http.StatusOK, code, expired)
	require.Regexp(t, `^{"type":"ERROR",.*"code":410}}\n$`, expired)
}

// A file that was lost is made anew, empty. It must not take its backup with it; nor must an older
// copy of the file.
func TestServe_ReplacesNoSnapshotThatItsFileDoesNotContinue(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	write := func(data, name string) {
		url, stop := serving(t, server.Options{Data: "bolt:" + path(data)})
		defer stop()
		code, created := call(t, "POST", url+inDefault, "", `{"metadata":{"name":"`+name+`"},"spec":{"size":3}}`)
		require.Equal(t, 201, code, created)
	}
	snapshot := func(of, name string) {
		_, errs, status := command(t.Context(), "store", "snapshot", path(of), path(name))
		require.Equal(t, exitOK, status, errs)
	}
	write("data", "a")
	snapshot("data", "first")
	earlier, err := os.ReadFile(path("data"))
	require.NoError(t, err)
	write("data", "b")
	snapshot("data", "second")
	require.NoError(t, os.WriteFile(path("earlier"), earlier, 0o600))
	require.NoError(t, os.WriteFile(path("text"), []byte("mine"), 0o600))
	require.NoError(t, os.WriteFile(path("text.0123abcd.tmp"), []byte("mine"), 0o600)) // of a server that writes it now
	for _, c := range []struct{ data, snapshot, problem string }{
		{"new", "first", "which exists and is of "},
		{"earlier", "second", "has widgets.example.com at revision"},
		{"data", "text", "is not a snapshot that can be read"},
	} {
		before, err := os.ReadFile(path(c.snapshot))
		require.NoError(t, err)
		_, errs, status := command(t.Context(), "serve", "--crd", manifests, "--listen", "127.0.0.1:0", "--data", "bolt:"+path(c.data), "--snapshot", path(c.snapshot))
		require.Equal(t, exitUsage, status, errs)
		require.Contains(t, errs, c.problem)
		require.Contains(t, errs, ": move it away, or give another file")
		after, err := os.ReadFile(path(c.snapshot))
		require.NoError(t, err)
		require.True(t, bytes.Equal(before, after))
	}
	require.NotContains(t, filetest.Names(t, dir), "new")
	require.Contains(t, filetest.Names(t, dir), "text.0123abcd.tmp")

	_, stop := serving(t, server.Options{Data: "bolt:" + path("data"), Snapshot: path("second")}) // nothing was written since
	stop()
	for _, restored := range []string{"restored", "again"} {
		_, errs, status := command(t.Context(), "store", "restore", path("second"), path(restored))
		require.Equal(t, exitOK, status, errs)
	}
	log := newServedOutput()
	_, stop = serving(t, server.Options{Data: "bolt:" + path("restored"), Snapshot: path("second"), Log: log})
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "wrote a snapshot") }, time.Minute, time.Millisecond, "it continues the one it was made of")
	stop()
	require.NotContains(t, log.String(), "incomplete snapshot", "there is none")
	require.NotContains(t, log.String(), "level=ERROR", "it was written")
	for data, problem := range map[string]string{"again": "is of another file that was restored", "data": "which exists and is on timeline"} {
		_, errs, status := command(t.Context(), "serve", "--crd", manifests, "--listen", "127.0.0.1:0", "--data", "bolt:"+path(data), "--snapshot", path("second"))
		require.Equal(t, exitUsage, status, errs)
		require.Contains(t, errs, problem)
	}
}

// A snapshot that cannot be written leaves the one before, and the server goes on.
func TestServe_GoesOnWithoutASnapshot(t *testing.T) {
	dir := t.TempDir()
	gone := filepath.Join(dir, "gone")
	require.NoError(t, os.Mkdir(gone, 0o700))
	log := newServedOutput()
	url, stop := serving(t, server.Options{Data: "bolt:" + filepath.Join(dir, "data"), Snapshot: filepath.Join(gone, "snapshot"), SnapshotEvery: time.Second, Log: log})
	defer stop()
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "wrote a snapshot") }, time.Minute, time.Millisecond)
	require.NoError(t, os.Rename(gone, gone+" for good")) // at once, also while another one is begun
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "the snapshot was not written") }, time.Minute, time.Millisecond)
	code, created := call(t, "POST", url+inDefault, "", `{"metadata":{"name":"a"},"spec":{"size":3}}`)
	require.Equal(t, 201, code, created)
}

func TestServe_RefusesSnapshotsThatCannotBe(t *testing.T) {
	dir := t.TempDir()
	data := "bolt:" + filepath.Join(dir, "data")
	for mention, args := range map[string][]string{
		"--snapshot-every is for --snapshot, which is missing": {"--data", data, "--snapshot-every", "1h"},
		"--snapshot is for objects in a file, and --data is":   {"--snapshot", filepath.Join(dir, "snapshot")},
		"--snapshot-every is 1ms; give 1s or more":             {"--data", data, "--snapshot", filepath.Join(dir, "snapshot"), "--snapshot-every", "1ms"},
		"--snapshot-every is 0s; give 1s or more":              {"--data", data, "--snapshot", filepath.Join(dir, "snapshot"), "--snapshot-every", "0"},
		"--snapshot-every is -1h0m0s; give 1s or more":         {"--data", data, "--snapshot", filepath.Join(dir, "snapshot"), "--snapshot-every=-1h"},
		"--snapshot is the file of --data":                     {"--data", data, "--snapshot", filepath.Join(dir, "data")},
		"--snapshot is the file of --kubeconfig":               {"--data", data, "--snapshot", filepath.Join(dir, "x"), "--kubeconfig", filepath.Join(dir, "x")},
		"--snapshot cannot be written: open":                   {"--data", data, "--snapshot", filepath.Join(dir, "none", "snapshot")},
	} {
		_, errs, status := command(t.Context(), append([]string{"serve", "--crd", manifests, "--listen", "127.0.0.1:0"}, args...)...)
		require.Equal(t, exitUsage, status, "%v: %s", args, errs)
		require.Contains(t, errs, mention)
		require.Empty(t, filetest.Names(t, dir))
	}
}
