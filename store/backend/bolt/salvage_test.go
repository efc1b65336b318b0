package bolt_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt"
)

// A damaged file is not opened; Salvage gives up what is damaged, and says so.
func TestSalvage_SaysWhatItGaveUp(t *testing.T) {
	f := newFixture(t)
	f.put("a", "unharmed")
	f.put("b", "to be harmed")
	f.put("c", "unharmed")
	f.close()
	image := []byte(f.image())
	for at := bytes.Index(image, []byte("to be harmed")); at >= 0; at = bytes.Index(image, []byte("to be harmed")) {
		image[at] = 'X'
	}
	require.NoError(t, os.WriteFile(f.path, image, 0o600))

	_, err := bolt.Open(f.path, f.opts)
	require.ErrorIs(t, err, backend.ErrCorrupt)
	var corrupt *bolt.CorruptError
	require.ErrorAs(t, err, &corrupt)
	require.Equal(t, uint64(3), corrupt.Revision)
	report, err := bolt.Check(f.path)
	require.NoError(t, err)
	require.Len(t, report.Problems, 1)

	var reported []error
	f.opts.Salvage, f.opts.OnError = true, func(err error) { reported = append(reported, err) }
	f.cfg.OnUndecodable = bolt.Keep
	f.open()
	require.Len(t, reported, 1)
	require.ErrorContains(t, reported[0], `"b"`)
	info, err := f.file.Info()
	require.NoError(t, err)
	require.Len(t, info.Repairs, 1)
	_, err = f.Get(f.ctx, "b")
	require.ErrorIs(t, err, backend.ErrUndecodable)
	require.ErrorContains(t, err, "Salvage")
	for _, key := range []string{"a", "c"} {
		_, err = f.Get(f.ctx, key)
		require.NoError(t, err)
	}
	require.Equal(t, f.revision(), f.compacted(), "history is given up")
	_, err = f.Remove(f.ctx, &store.Object{Key: "b", Revision: 3})
	require.NoError(t, err)
	f.opts.Salvage, f.cfg.OnUndecodable = false, bolt.Fail
	f.reopen(0)
	require.Len(t, f.list(backend.ListOptions{}), 2)
}

// A consumer that has seen the newest revision has a value that is lost, or does not have what is
// shown in its place: it is told to list again.
func TestSalvage_ExpiresAlsoTheNewestRevision(t *testing.T) {
	for what, harmed := range map[string]string{"whose key is known": `b{"Key":"b","Text":"X`, "whose key is not": `/{"Key":"b","Text":"t`} {
		t.Run("an object "+what, func(t *testing.T) {
			f := newFixture(t)
			f.put("a", "unharmed")
			f.put("b", "to be harmed")
			last := f.put("c", "unharmed").Revision
			id := f.storeID()
			f.close()
			f.harm(`b{"Key":"b","Text":"t`, harmed)
			f.opts.Salvage, f.cfg.OnUndecodable = true, bolt.Keep
			f.open()
			require.Equal(t, id, f.storeID())
			require.Equal(t, last+1, f.revision())
			_, err := f.Watch(f.ctx, backend.WatchOptions{From: last, Notify: func() {}})
			require.ErrorIs(t, err, store.ErrExpired)
			w := f.watch(f.revision(), "")
			defer w.Close()
			next := f.put("d", "new").Revision
			require.Equal(t, last+2, next)
			require.Len(t, w.read(next, 10), 1)
			f.opts.Salvage = false
			f.reopen(0)
			require.Equal(t, next, f.revision())
			f.check()
		})
	}
}

// An object whose key is damaged into one that cannot be is given up, so that the file can be used.
func TestSalvage_LeavesNoKeyThatCannotBe(t *testing.T) {
	f := newFixture(t)
	f.put("a", "1")
	f.put("ns/foo", "1")
	f.close()
	f.harm(`ns/foo{`, `ns/fo/{`)
	f.opts.Salvage = true
	f.open()
	require.Len(t, f.list(backend.ListOptions{}), 1)
	f.opts.Salvage = false
	f.reopen(0)
	f.put("ns/foo", "2")
	require.Len(t, f.list(backend.ListOptions{}), 2)
}

// harm replaces bytes of the file, which is closed, on old pages, too.
func (f *fixture) harm(what, by string) {
	f.Helper()
	image := f.image()
	require.Contains(f, image, what)
	require.NoError(f, os.WriteFile(f.path, []byte(strings.ReplaceAll(image, what, by)), 0o600))
}
