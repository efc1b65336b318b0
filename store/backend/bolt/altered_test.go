package bolt_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
)

// alterations are a record as a defect might have written it, with a right checksum.
func alterations(r journal.Record, revision uint64) map[string]journal.Record {
	altered := map[string]journal.Record{}
	alter := func(what string, change func(*journal.Record)) {
		other := r
		change(&other)
		altered[what] = other
	}
	for _, kind := range []journal.Kind{journal.Put, journal.Delete, journal.Emit} {
		alter(fmt.Sprint("kind ", kind), func(r *journal.Record) { r.Kind = kind })
	}
	for prev := range revision {
		alter(fmt.Sprint("prev ", prev), func(r *journal.Record) { r.Prev = prev })
	}
	for _, key := range []string{"new", "ns-1/item-1", "ns-2/item-2"} {
		alter("key "+key, func(r *journal.Record) { r.Key = []byte(key) })
	}
	alter("created", func(r *journal.Record) { r.Created = revision / 2 })
	return altered
}

// alter replaces a record in the file.
func (f *fixture) alter(revision uint64, r journal.Record) {
	f.Helper()
	j, err := journal.Open(f.path, journal.Options{})
	require.NoError(f, err)
	require.NoError(f, j.Rewrite("items", []journal.Entry{{Log: "items", Revision: revision, Data: r.AppendTo(nil, revision)}}))
	require.NoError(f, j.Close())
}

// openAltered opens a file of which a record is altered, unless that is found, as
// it should be.
func (f *fixture) openAltered(what string) (found bool) {
	f.Helper()
	file, err := bolt.Open(f.path, f.opts)
	if err == nil {
		if f.Backend, err = bolt.New(file, "items", f.cfg); err == nil {
			f.file = file
			return false
		}
		require.NoError(f, file.Close())
	}
	require.True(f, errors.Is(err, backend.ErrCorrupt) || errors.Is(err, backend.ErrUndecodable), "%s: %v", what, err)
	return true
}

// A record that is not what was written is found when the file is opened, or has at least no
// effect on other objects: not even when history is deleted.
func TestNew_FindsARecordThatWouldTakeOthersWithIt(t *testing.T) {
	f := newFixture(t)
	f.story(7, 8)
	require.NoError(t, f.Compact(f.ctx, f.revision()))
	f.file.Settle()
	first := uint64(f.revision()) + 1
	f.story(9, 10)
	last := uint64(f.revision())
	records := map[uint64]journal.Record{}
	f.close()
	j, err := journal.Open(f.path, journal.Options{ReadOnly: true})
	require.NoError(t, err)
	require.NoError(t, j.Read(f.ctx, "items", func(v journal.View) error {
		return v.Scan(first-1, last, func(revision uint64, r journal.Record) (bool, error) {
			r.Key, r.Value = bytes.Clone(r.Key), bytes.Clone(r.Value)
			records[revision] = r
			return true, nil
		})
	}))
	require.NoError(t, j.Close())
	whole, err := os.ReadFile(f.path)
	require.NoError(t, err)

	found := 0
	for revision, r := range records {
		for what, altered := range alterations(r, revision) {
			what = fmt.Sprintf("revision %d: %s", revision, what)
			require.NoError(t, os.WriteFile(f.path, whole, 0o600))
			f.alter(revision, altered)
			if f.openAltered(what) {
				found++
				continue
			}
			before := f.list(backend.ListOptions{})
			require.NoError(t, f.Compact(f.ctx, store.Revision(last)))
			f.file.Settle()
			info, err := f.file.Info()
			require.NoError(t, err)
			require.NoError(t, info.LastError, what)
			f.reopen(0)
			require.Equal(t, before, f.list(backend.ListOptions{}), what)
			f.close()
		}
	}
	require.Greater(t, found, 100)
	require.NoError(t, os.WriteFile(f.path, whole, 0o600))
	f.open()
}
