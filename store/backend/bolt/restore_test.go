package bolt_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
	"github.com/watchmill/watchmill/usercode"
)

func TestSnapshot_IsRestoredWithoutTheOldResumePoints(t *testing.T) {
	f := newFixture(t)
	_, states := f.story(1, 100)
	rev := f.revision()
	var snapshot bytes.Buffer
	m, err := f.file.Snapshot(f.ctx, &snapshot)
	require.NoError(t, err)
	require.Equal(t, map[string]uint64{"items": uint64(rev)}, m.Revisions)
	f.put("after", "the snapshot")
	info, err := f.file.Info()
	require.NoError(t, err)
	f.close()

	f.path = filepath.Join(t.TempDir(), "restored.db")
	_, err = bolt.Restore(f.ctx, &snapshot, f.path, bolt.RestoreOptions{})
	require.NoError(t, err)
	f.open()
	restored, err := f.file.Info()
	require.NoError(t, err)
	require.Equal(t, info.StoreID, restored.StoreID)
	require.Equal(t, info.Timeline+1, restored.Timeline)
	require.Equal(t, states[rev], f.list(backend.ListOptions{}))
	require.Equal(t, rev+1<<32, f.revision())
	for _, from := range []store.Revision{1, rev, rev + 1, rev + 1000} {
		_, err := f.Watch(f.ctx, backend.WatchOptions{From: from, Notify: func() {}})
		require.ErrorIs(t, err, store.ErrExpired)
	}
	w := f.watch(f.revision(), "")
	f.put("more", "x")
	require.Len(t, w.read(rev+1<<32+1, 10), 1)
	f.reopen(0)
	_, err = bolt.Restore(f.ctx, bytes.NewReader(nil), f.path, bolt.RestoreOptions{})
	require.Error(t, err)
}

// Two files restored from one snapshot go on at the same revisions. A consumer of one that meets the
// other sees that it is another storage.
func TestRestore_OfOneSnapshotTwiceMakesTwoStorages(t *testing.T) {
	f := newFixture(t)
	f.put("a", "1")
	ids, revisions := []string{f.storeID()}, []store.Revision{}
	var snapshot bytes.Buffer
	_, err := f.file.Snapshot(f.ctx, &snapshot)
	require.NoError(t, err)
	for range 2 {
		f.close()
		f.path = filepath.Join(t.TempDir(), "restored.db")
		_, err := bolt.Restore(f.ctx, bytes.NewReader(snapshot.Bytes()), f.path, bolt.RestoreOptions{})
		require.NoError(t, err)
		f.open()
		ids, revisions = append(ids, f.storeID()), append(revisions, f.put("b", "2").Revision)
		f.reopen(0)
		require.Equal(t, ids[len(ids)-1], f.storeID())
		info, err := f.file.Info()
		require.NoError(t, err)
		require.NotZero(t, info.Branch)
	}
	require.Equal(t, revisions[0], revisions[1])
	require.NotEqual(t, ids[0], ids[1])
	require.NotEqual(t, ids[0], ids[2])
	require.NotEqual(t, ids[1], ids[2])
}

func (f *fixture) storeID() string {
	f.Helper()
	id, err := f.StoreID(f.ctx)
	require.NoError(f, err)
	return id
}

// identified is a journal of a file with another identity.
type identified struct {
	journal.Journal
	id journal.Identity
}

func (j identified) Identity() journal.Identity { return j.id }

// Consumers have saved the identities of files that were made or restored by earlier versions.
func TestStoreID_StaysAsItIs(t *testing.T) {
	for want, id := range map[string]journal.Identity{
		"bolt:0b000000000000000000000000000000.0/items":    {ID: [16]byte{11}},
		"bolt:0b000000000000000000000000000000.3/items":    {ID: [16]byte{11}, Timeline: 3},
		"bolt:0b000000000000000000000000000000.3.ab/items": {ID: [16]byte{11}, Timeline: 3, Branch: 0xab},
	} {
		f := newFixture(t, func(f *fixture) {
			f.wrap = func(j journal.Journal) journal.Journal { return identified{j, id} }
		})
		require.Equal(t, want, f.storeID())
	}
}

// Revisions of a restored file fit in continue tokens, as all others do.
func TestRestore_RefusesAFloorThatIsTooLarge(t *testing.T) {
	f := newFixture(t)
	f.put("a", "1")
	f.put("b", "2")
	var snapshot bytes.Buffer
	_, err := f.file.Snapshot(f.ctx, &snapshot)
	require.NoError(t, err)
	f.close()
	f.path = filepath.Join(t.TempDir(), "restored.db")
	_, err = bolt.Restore(f.ctx, bytes.NewReader(snapshot.Bytes()), f.path, bolt.RestoreOptions{Floor: 1<<62 + 1})
	var option *usercode.ConfigError
	require.ErrorAs(t, err, &option)
	require.Equal(t, "RestoreOptions.Floor", option.Field)
	require.NoFileExists(t, f.path)
	_, err = bolt.Restore(f.ctx, &snapshot, f.path, bolt.RestoreOptions{Floor: 1 << 62})
	require.NoError(t, err)
	f.open()
	first, err := f.List(f.ctx, backend.ListOptions{Limit: 1})
	require.NoError(t, err)
	require.Len(t, f.list(backend.ListOptions{Continue: first.Continue}), 1)
}
