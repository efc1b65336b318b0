package server

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry/crd"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt"
)

// closer is called when a part of the data is closed.
type closer func() error

func (c closer) Close() error { return c() }

// A server that could not begin takes no file with it that another one has opened since.
func TestData_RemovesANewFileBeforeAnotherProgramCanOpenIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	d := &data{log: slog.New(slog.DiscardHandler)}
	require.NoError(t, d.openFile(path))
	d.kinds = append(d.kinds, &openKind{backends: []io.Closer{closer(func() error {
		other, err := bolt.Open(path, bolt.Options{})
		require.NoError(t, err, "it is another file")
		return other.Close()
	})}})
	require.NoError(t, d.close())
	require.FileExists(t, path)
}

// A server that could not begin leaves a file that was there, though it has no object.
func TestData_LeavesAFileThatWasThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	empty, err := bolt.Open(path, bolt.Options{})
	require.NoError(t, err)
	require.NoError(t, empty.Close())
	d, err := openData(&Options{Data: "bolt:" + path}, newHost(t), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.NoError(t, d.close())
	require.FileExists(t, path)
}

func TestData_NamesThePlaceOfItsStorage(t *testing.T) {
	tape := func(context.Context, string, string, store.Schema, func(error)) (backend.Backend, error) {
		return nil, nil
	}
	_, err := openData(&Options{Data: "etcd:", Storages: Storages{"etcd": tape}}, newHost(t), slog.New(slog.DiscardHandler))
	require.ErrorIs(t, err, engine.ErrConfig)
	require.ErrorContains(t, err, `--data is "etcd:"; give memory, etcd:WHERE, bolt:WHERE`)
}

// A replica that is cut off serves what it has, and is ready: without a counter an alert has nothing to look at.
func TestData_CountsTheErrorsOfTheUpstreamServer(t *testing.T) {
	d, err := openData(&Options{Data: "memory", Upstream: "http://127.0.0.1:1"}, newHost(t), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	all := d.collectors()
	require.Len(t, all, 1)
	require.Zero(t, testutil.ToFloat64(all[0]))
	for range 2 {
		d.origin.OnError(backend.ErrUnavailable)
	}
	require.EqualValues(t, 2, testutil.ToFloat64(all[0]))
	problems, err := testutil.CollectAndLint(all[0])
	require.NoError(t, err)
	require.Empty(t, problems)

	d, err = openData(&Options{Data: "memory"}, newHost(t), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.Empty(t, d.collectors())
}

// gears returns a definition of two versions, each with a selectable field of its own.
func gears(t *testing.T) *crd.Definition {
	t.Helper()
	defined, err := crd.Parse(strings.NewReader(`{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "gears.example.com"},
		"spec": {"group": "example.com", "scope": "Cluster", "names": {"plural": "gears", "kind": "Gear"}, "versions": [
			{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}, "selectableFields": [{"jsonPath": ".spec.size"}]},
			{"name": "v1beta1", "served": true, "storage": false, "schema": {"openAPIV3Schema": {"type": "object"}}, "selectableFields": [{"jsonPath": ".spec.teeth"}]}
		]}
	}`))
	require.NoError(t, err)
	return defined[0]
}

// newHost returns a host that is closed when the test ends.
func newHost(t *testing.T) *engine.Host {
	host, err := engine.NewHost(engine.HostConfig{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, host.Close()) })
	return host
}

// A file ends the types in it, and does not wait for ever for a disk that hangs, as each of them does.
func TestData_LeavesTheTypesOfAFileToTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	for range 2 {
		d, err := openData(&Options{Data: "bolt:" + path}, newHost(t), slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		d.keep()
		opened, err := d.open(t.Context(), definedKind(gears(t), "gears.yaml"))
		require.NoError(t, err)
		require.Empty(t, opened.backends)
		require.NoError(t, opened.close())
		require.NoError(t, d.close())
	}
}

// Storage has the fields of all versions, by which those of one would match nothing, or everything.
func TestData_EachVersionHasItsOwnFields(t *testing.T) {
	d, err := openData(&Options{Data: "memory"}, newHost(t), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer func() { require.NoError(t, d.close()) }()
	opened, err := d.open(t.Context(), definedKind(gears(t), "gears.yaml"))
	require.NoError(t, err)
	defer func() { require.NoError(t, opened.close()) }()
	require.Len(t, opened.Resources(), 2)
	for i, field := range []string{"spec.size", "spec.teeth"} {
		require.Equal(t, []string{field, "metadata.name", "metadata.namespace"}, opened.Resources()[i].Info().Fields)
	}
}

// A line each few seconds shows that the server reads, and not that it hangs.
func TestData_SaysHowFarItHasRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		d := &data{log: slog.New(slog.NewTextHandler(&text, nil))}
		told := d.progress("widgets.example.com")
		for done := range 12 {
			told(done, 12)
			time.Sleep(progressEvery / 5)
		}
		lines := strings.Split(strings.TrimSpace(text.String()), "\n")
		require.Len(t, lines, 2)
		require.Contains(t, lines[0], "kind=widgets.example.com records=5 of_about=12")
		require.Contains(t, lines[1], "records=10")
	})
}
