package bolt_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/backendtest"
	"github.com/watchmill/watchmill/store/backend/bolt"
	"github.com/watchmill/watchmill/store/codec"
)

// What Rewrite replaces is left in unused space, of which Shrink leaves nothing and snapshots have none.
func TestRewrite_CanLeaveNoOldValueBehind(t *testing.T) {
	f := newFixture(t)
	secret := "the secret " + strings.Repeat("x", 100_000)
	for i := range 20 { // a small file is not worth shrinking
		f.put(fmt.Sprint("k", i), secret)
	}
	f.close()
	f.cfg.Sealer = sealer(t, 'a')
	f.open()
	_, err := f.Rewrite(f.ctx)
	require.NoError(t, err)
	require.True(t, strings.Contains(f.image(), "the secret"))
	before := f.list(backend.ListOptions{})

	var snapshot bytes.Buffer
	_, err = f.file.Snapshot(f.ctx, &snapshot)
	require.NoError(t, err)
	require.False(t, strings.Contains(snapshot.String(), "the secret"))
	f.close()
	_, _, err = bolt.Shrink(f.ctx, f.path)
	require.NoError(t, err)
	require.False(t, strings.Contains(f.image(), "the secret"))
	f.open()
	require.Equal(t, before, f.list(backend.ListOptions{}))

	f.close()
	f.path = filepath.Join(t.TempDir(), "restored.db")
	_, err = bolt.Restore(f.ctx, &snapshot, f.path, bolt.RestoreOptions{})
	require.NoError(t, err)
	require.False(t, strings.Contains(f.image(), "the secret"))
	f.open()
	require.Len(t, f.list(backend.ListOptions{}), len(before))
}

// From one key to the next, and from none to one, while nothing is out of reach.
func TestRewrite_RotatesKeys(t *testing.T) {
	f := newFixture(t)
	told, _ := f.story(1, 120)
	last := f.revision()
	require.Contains(t, f.image(), `"Text"`)
	for i, s := range []codec.Sealer{sealer(t, 'a'), sealer(t, 'b', 'a')} {
		f.close()
		f.cfg.Sealer = s
		f.open()
		n, err := f.Rewrite(f.ctx)
		require.NoError(t, err)
		require.Greater(t, n, 50, "round %d", i)
		n, err = f.Rewrite(f.ctx)
		require.NoError(t, err)
		require.Zero(t, n, "there is nothing left to do")
		require.Equal(t, told, f.watch(1, "").read(last, 50))
	}
	f.close()
	f.cfg.Sealer = sealer(t, 'b')
	f.open()
	require.Equal(t, told, f.watch(1, "").read(last, 50), "the first key is not needed any more")
	require.NoError(t, f.Compact(f.ctx, last/2))
	f.file.Settle()
	f.close()
	report, err := bolt.Check(f.path)
	require.NoError(t, err)
	require.Empty(t, report.Problems)
	f.open()
}

// A revision that the schema puts into a value is not in the file, where the value is from
// before the write, and is no reason to encode it again.
func TestRewrite_ChangesNothingForARevisionInTheValue(t *testing.T) {
	f := newFixture(t, func(f *fixture) {
		f.cfg.Schema.SetRevision = func(o *store.Object, rev store.Revision) {
			store.As[backendtest.Item](o).Value.Text = rev.String()
		}
	})
	f.put("a", "x")
	f.put("a", "y")
	n, err := f.Rewrite(f.ctx)
	require.NoError(t, err)
	require.Zero(t, n)
}

// tagged is JSON under a tag.
type tagged struct {
	codec.JSON
	tag uint8
}

func (c tagged) Encode(value any) (uint8, []byte, error) {
	_, data, err := c.JSON.Encode(value)
	return c.tag, data, err
}

func (c tagged) Decode(_ uint8, data []byte, into any) error { return c.JSON.Decode(0, data, into) }

// A later codec may have another tag for the same encoding, and after Rewrite need not know the old one.
func TestRewrite_ChangesTags(t *testing.T) {
	f := newFixture(t, func(f *fixture) { f.cfg.Codec = tagged{tag: 1} })
	f.put("a", "x")
	f.close()
	f.cfg.Codec = tagged{tag: 2}
	f.open()
	for _, want := range []int{1, 0} {
		n, err := f.Rewrite(f.ctx)
		require.NoError(t, err)
		require.Equal(t, want, n)
	}
	f.close()
	_, err := bolt.Dump(f.path, func(r bolt.Record) error {
		require.Equal(t, uint8(2), r.Tag)
		return nil
	})
	require.NoError(t, err)
	f.open()
}

// A value that cannot be encoded again stays, and the error does not say that it cannot be
// decoded.
func TestRewrite_LeavesWhatCannotBeEncoded(t *testing.T) {
	f := newFixture(t, func(f *fixture) { f.cfg.Codec = versioned{write: 1} })
	f.put("a", "error")
	f.put("b", "fine")
	before := f.list(backend.ListOptions{})
	f.close()
	f.cfg.Codec = reencoding{}
	f.open()
	n, err := f.Rewrite(f.ctx)
	require.Equal(t, 1, n)
	require.ErrorIs(t, err, errBroken)
	require.NotErrorIs(t, err, backend.ErrUndecodable)
	require.ErrorContains(t, err, `items "a" at revision 2`)
	require.Equal(t, before, f.list(backend.ListOptions{}))
	f.reopen(0)
	require.Equal(t, before, f.list(backend.ListOptions{}))
}

// A value that cannot be decoded, as without its key, cannot be encoded again, and stays.
func TestRewrite_LeavesWhatCannotBeDecoded(t *testing.T) {
	f := newFixture(t, func(f *fixture) { f.cfg.Sealer = sealer(t, 'a') })
	f.put("sealed", "x")
	f.close()
	f.cfg.Sealer, f.cfg.OnUndecodable = nil, bolt.Keep
	f.open()
	f.put("plain", "x")
	n, err := f.Rewrite(f.ctx)
	require.Zero(t, n)
	var unknown *backend.UndecodableError
	require.ErrorAs(t, err, &unknown)
	require.Equal(t, "sealed", unknown.Key)
	require.ErrorContains(t, err, "Config.Sealer is nil")
	f.close()
	f.cfg.Sealer, f.cfg.OnUndecodable = sealer(t, 'a'), bolt.Fail
	f.open()
	require.Len(t, f.list(backend.ListOptions{}), 2)
}

// reencoding decodes what any codec of these tests has encoded, and encodes as [panicking].
type reencoding struct{ panicking }

func (reencoding) Decode(tag uint8, data []byte, into any) error {
	return versioned{}.Decode(tag, data, into)
}
