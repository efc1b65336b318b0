package memory_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// What was looked up or written last is remembered, and must never be what was.
// Nothing here takes a snapshot, which would answer instead.
func TestWhatWasLookedUpLastIsNeverStale(t *testing.T) {
	f := newFixture(t, memory.Options{})
	first := f.put("hall", 0, backend.PutOptions{})
	require.Equal(t, first.Revision, f.revisionOf("hall"))
	second := f.put("hall", first.Revision, backend.PutOptions{TTL: time.Minute})
	require.Equal(t, second.Revision, f.revisionOf("hall"))
	_, err := f.Put(f.ctx, "hall", lamp{Name: "hall"}, first.Revision, backend.PutOptions{})
	require.ErrorIs(t, err, store.ErrConflict)

	gone, err := f.Remove(f.ctx, "hall", second.Revision)
	require.NoError(t, err)
	require.Zero(t, f.revisionOf("hall"))
	_, err = f.Remove(f.ctx, "hall", gone.Revision)
	require.ErrorIs(t, err, store.ErrNotFound)

	f.put("hall", 0, backend.PutOptions{TTL: time.Minute})
	require.NotZero(t, f.revisionOf("hall"))
	f.clock.Advance(time.Minute)
	require.Zero(t, f.revisionOf("hall"), "expired")
}

// revisionOf returns the revision of the object under key; zero if there is
// none.
func (f *fixture) revisionOf(key string) store.Revision {
	f.Helper()
	o, err := f.Get(f.ctx, key)
	if err != nil {
		require.ErrorIs(f, err, store.ErrNotFound)
		return 0
	}
	return o.Revision
}

func TestVersionsShareTheirLabels(t *testing.T) {
	lit := func(l lamp) labels.Set { return labels.Set{"room": l.Name} }
	f := newFixtureOf(t, store.Schema[lamp]{Key: lamps.Key, Labels: lit}, memory.Options{})
	first := f.put("hall", 0, backend.PutOptions{})
	second := f.put("hall", first.Revision, backend.PutOptions{})
	require.True(t, second.SharesAttributes(first))
	require.Equal(t, labels.Set{"room": "hall"}, second.Labels)
}
