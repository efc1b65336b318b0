package faulty_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/backendtest"
	"github.com/watchmill/watchmill/store/backend/faulty"
	"github.com/watchmill/watchmill/store/backend/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newBackend returns a faulty backend over an empty one in memory.
func newBackend(t testing.TB, opts faulty.Options) *faulty.Backend {
	t.Helper()
	b, err := memory.New(backendtest.Schema(), memory.Options{Clock: opts.Clock, FirstRevision: 1})
	require.NoError(t, err)
	f := faulty.New(b, opts)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

func draft(key string) *store.Object { return backendtest.Draft(backendtest.Value{Key: key}) }

// create stores an object.
func create(t testing.TB, b backend.Backend, key string) *store.Object {
	t.Helper()
	o, err := b.Put(t.Context(), draft(key), nil, backend.PutOptions{})
	require.NoError(t, err)
	return o
}

func list(t testing.TB, b backend.Backend) error {
	t.Helper()
	_, err := b.List(t.Context(), backend.ListOptions{})
	return err
}

// reader reads a watch.
type reader struct {
	backend.Watcher
	notified int
}

// watch opens a watch on all keys after a revision; zero means from now on.
func watch(t testing.TB, b backend.Backend, from store.Revision) *reader {
	t.Helper()
	r := &reader{}
	var err error
	r.Watcher, err = b.Watch(t.Context(), backend.WatchOptions{From: from, Notify: func() { r.notified++ }})
	require.NoError(t, err)
	t.Cleanup(r.Close)
	return r
}

// revisions reads once and returns the revisions of the events.
func (r *reader) revisions(t testing.TB) []store.Revision {
	t.Helper()
	batch, err := r.Next(100)
	require.NoError(t, err)
	revisions := []store.Revision{}
	for _, ev := range batch.Events {
		revisions = append(revisions, ev.Revision)
	}
	return revisions
}
