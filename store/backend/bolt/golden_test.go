package bolt_test

import (
	"bytes"
	"compress/gzip"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

var writeGolden = flag.Bool("write-golden", false, "write testdata/format-1.db.gz anew, which is right only if no release has it yet")

const golden = "testdata/format-1.db.gz"

// goldenStory is what is in the golden file: a base, a history, an emission, a
// deletion, times of expiry and a compaction.
func (f *fixture) goldenStory() {
	f.Helper()
	f.put("ns/a", "1")
	f.put("ns/b", "2")
	f.put("ns/a", "3")
	f.remove("ns/b")
	require.NoError(f, f.Compact(f.ctx, 4))
	f.file.Settle()
	f.emit("ns/c", "4")
	f.putFor(time.Hour, "ns/b", "5")
	f.put("ns/a", "6")
}

// The state and the history of the golden file.
var (
	goldenState   = []string{"ns/a=6@8 created 2 text=6 [ns/a] written 2024-04-17 12:00:00", "ns/b=5@7 created 7 text=5 [ns/b] written 2024-04-17 12:00:00 expires 2024-04-17 13:00:00"}
	goldenHistory = []string{
		"DELETED ns/b@5: ns/b=2@5 created 3 text=2 [ns/b] written 2024-04-17 12:00:00 after ns/b=2@3 created 3 text=2 [ns/b] written 2024-04-17 12:00:00",
		"EMITTED ns/c@6: ns/c=4@6 created 6 text=4 [ns/c] written 2024-04-17 12:00:00 after -",
		"ADDED ns/b@7: ns/b=5@7 created 7 text=5 [ns/b] written 2024-04-17 12:00:00 expires 2024-04-17 13:00:00 after -",
		"MODIFIED ns/a@8: ns/a=6@8 created 2 text=6 [ns/a] written 2024-04-17 12:00:00 after ns/a=3@4 created 2 text=3 [ns/a] written 2024-04-17 12:00:00",
	}
)

func (f *fixture) requireGolden() {
	f.Helper()
	require.Equal(f, goldenState, f.list(backend.ListOptions{}))
	require.Equal(f, store.Revision(4), f.compacted())
	require.Equal(f, goldenHistory, f.watch(4, "").read(8, 10))
}

// A file of any released format is opened for ever.
func TestGolden_IsOpenedForEver(t *testing.T) {
	f := newFixture(t)
	if *writeGolden {
		f.goldenStory()
		f.requireGolden()
		f.close()
		f.writeGolden()
		f.open()
	}
	f.close()
	packed, err := os.Open(golden)
	require.NoError(t, err)
	defer packed.Close()
	r, err := gzip.NewReader(packed)
	require.NoError(t, err)
	image, err := io.ReadAll(r)
	require.NoError(t, err)
	f.path = filepath.Join(t.TempDir(), "golden.db")
	require.NoError(t, os.WriteFile(f.path, image, 0o600))
	f.open()
	f.requireGolden()
	f.put("ns/d", "goes on")
	f.check()
	info, err := f.file.Info()
	require.NoError(t, err)
	require.Equal(t, uint64(1), info.Format)
	require.Equal(t, "bolt:"+info.StoreID+".0/items", f.storeID(), "which consumers have saved")
}

func (f *fixture) writeGolden() {
	f.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := io.WriteString(w, f.image())
	require.NoError(f, err)
	require.NoError(f, w.Close())
	require.NoError(f, os.WriteFile(golden, out.Bytes(), 0o644))
}
