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
func TestGet_WhatWasLookedUpLastIsNeverStale(t *testing.T) {
	f := newFixture(t, memory.Options{})
	first := f.put("hall", nil, backend.PutOptions{})
	require.Equal(t, first.Revision, f.revisionOf("hall"))
	second := f.put("hall", first, backend.PutOptions{TTL: time.Minute})
	require.Equal(t, second.Revision, f.revisionOf("hall"))
	_, err := f.Put(f.ctx, newLamp("hall", false), first, backend.PutOptions{})
	require.ErrorIs(t, err, store.ErrConflict)

	gone, err := f.Remove(f.ctx, second)
	require.NoError(t, err)
	require.Zero(t, f.revisionOf("hall"))
	_, err = f.Remove(f.ctx, gone)
	require.ErrorIs(t, err, store.ErrNotFound)

	f.put("hall", nil, backend.PutOptions{TTL: time.Minute})
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

func TestPut_VersionsShareTheirLabels(t *testing.T) {
	f := newFixture(t, memory.Options{})
	in := func(room string) *store.Object {
		draft := newLamp("hall", false)
		draft.Labels = store.LabelsOf(labels.Set{"room": room})
		return draft
	}
	first, err := f.Put(f.ctx, in("hall"), nil, backend.PutOptions{})
	require.NoError(t, err)
	second, err := f.Put(f.ctx, in("hall"), first, backend.PutOptions{})
	require.NoError(t, err)
	require.True(t, store.SharesAttributes(second, first))
	require.Equal(t, labels.Set{"room": "hall"}, second.Labels.Set())
}
