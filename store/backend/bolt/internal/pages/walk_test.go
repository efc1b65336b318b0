package pages_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/pages"
)

func Example() {
	dir, _ := os.MkdirTemp("", "")
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "file.db")
	db, _ := bbolt.Open(path, 0o600, nil)
	_ = db.Update(func(tx *bbolt.Tx) error {
		b, _ := tx.CreateBucket([]byte("lamps"))
		return b.Put([]byte("hall"), []byte("on"))
	})
	_ = db.Close()

	image, _ := os.ReadFile(path)
	show := func() {
		file := bytes.NewReader(image)
		metas, err := pages.ReadMetas(file, file.Size())
		if err != nil {
			fmt.Println(err)
			return
		}
		_ = pages.Walk(file, metas.Newest, func(it pages.Item) error {
			if it.Key != nil {
				fmt.Printf("%s: %s=%s\n", it.Bucket, it.Key, it.Value)
			}
			return nil
		}, func(p pages.Problem) { fmt.Println(p) })
	}
	show()
	clear(image[:os.Getpagesize()])
	clear(image[os.Getpagesize():][:os.Getpagesize()])
	show()
	// Output:
	// lamps: hall=on
	// page 0: neither meta page is valid: it is not a meta page: the magic number is missing
}

// What the walk finds is what bbolt finds, and all of it, at every size.
func TestWalk_FindsWhatBboltFinds(t *testing.T) {
	for _, commits := range []int{0, 1, 2, 3, 10, 100} {
		path := written(t, commits)
		items, problems := walk(t, read(t, path))
		require.Empty(t, problems, "%d commits", commits)
		require.Equal(t, itemsOf(t, path), items, "%d commits", commits)
	}
}

// More free pages than a page can count have their number in the first element.
func TestWalk_ReadsALongFreelist(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file.db")
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{PageSize: 1024, NoSync: true, NoGrowSync: true, FreelistType: bbolt.FreelistMapType})
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket([]byte("log"))
		if err != nil {
			return err
		}
		return b.Put([]byte("large"), make([]byte, 0x10010*1024))
	}))
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("log")).Delete([]byte("large")) }))
	require.NoError(t, db.Close())
	_, problems := walk(t, read(t, path))
	require.Empty(t, problems)
}

func TestReadMetas_TakesTheOtherIfOneIsInvalid(t *testing.T) {
	image := read(t, written(t, 10))
	metas, err := pages.ReadMetas(bytes.NewReader(image), int64(len(image)))
	require.NoError(t, err)
	require.Nil(t, metas.Invalid)
	for page := range uint64(2) {
		damaged := bytes.Clone(image)
		damaged[page*pageSize+20] ^= 1
		m, err := pages.ReadMetas(bytes.NewReader(damaged), int64(len(damaged)))
		require.NoError(t, err)
		require.Equal(t, page, m.Invalid.Page)
		require.Equal(t, 1-page, m.Newest.Page)
		if page == metas.Newest.Page {
			require.Equal(t, metas.Newest.Txid-1, m.Newest.Txid, "one batch earlier")
		}
	}
}

// An error of reading is not damage.
func TestWalk_PassesOnWhatReadingMeets(t *testing.T) {
	image := read(t, written(t, 10))
	metas, err := pages.ReadMetas(bytes.NewReader(image), int64(len(image)))
	require.NoError(t, err)
	broken := errors.New("broken")
	for after := range 20 {
		err := pages.Walk(&failing{bytes.NewReader(image), after, broken}, metas.Newest, nil, func(p pages.Problem) { t.Error(p) })
		require.ErrorIs(t, err, broken)
	}
	_, err = pages.ReadMetas(&failing{bytes.NewReader(image), 0, broken}, int64(len(image)))
	require.ErrorIs(t, err, broken)
	_, err = pages.ReadMetas(&failing{bytes.NewReader(image), 1, broken}, int64(len(image)))
	require.ErrorIs(t, err, broken)
}

// failing fails after some reads.
type failing struct {
	*bytes.Reader
	left int
	err  error
}

func (f *failing) ReadAt(p []byte, at int64) (int, error) {
	if f.left--; f.left < 0 {
		return 0, f.err
	}
	return f.Reader.ReadAt(p, at)
}

func TestWalk_StopsWhenTheVisitorDoes(t *testing.T) {
	image := read(t, written(t, 10))
	metas, err := pages.ReadMetas(bytes.NewReader(image), int64(len(image)))
	require.NoError(t, err)
	enough, n := errors.New("enough"), 0
	err = pages.Walk(bytes.NewReader(image), metas.Newest, func(pages.Item) error {
		if n++; n == 5 {
			return enough
		}
		return nil
	}, nil)
	require.ErrorIs(t, err, enough)
	require.Equal(t, 5, n)
}

func TestWalk_NamesTheZeroedPage(t *testing.T) {
	image := read(t, written(t, 12))
	free := freePages(t, image)
	metas, err := pages.ReadMetas(bytes.NewReader(image), int64(len(image)))
	require.NoError(t, err)
	root := metas.Newest.Root
	for page := uint64(2); page < uint64(len(image)/pageSize); page++ {
		damaged := bytes.Clone(image)
		clear(damaged[page*pageSize:][:pageSize])
		items, problems := walk(t, damaged)
		if free[page] || len(problems) == 0 {
			continue // inside a value's pages, which only its own checksum protects
		}
		first := problems[0].Page
		run := uint64(binary.NativeEndian.Uint32(image[first*pageSize+12:]))
		require.True(t, first <= page && page <= first+run, "page %d: %v", page, problems)
		require.True(t, len(items) > 0 || page == root, "the rest can be read")
	}
}

func TestReadMetas_NamesWhereTheFileIsCutOff(t *testing.T) {
	image := read(t, written(t, 30))
	whole, err := pages.ReadMetas(bytes.NewReader(image), int64(len(image)))
	require.NoError(t, err)
	for size := 0; size < len(image); size += pageSize / 2 {
		_, err := pages.ReadMetas(bytes.NewReader(image[:size]), int64(size))
		if int64(size) >= whole.Newest.Size() {
			require.NoError(t, err)
			continue
		}
		var p pages.Problem
		require.ErrorAs(t, err, &p, "%d bytes", size)
		if size > 2*pageSize {
			require.Equal(t, uint64(size/pageSize), p.Page)
		}
	}
}

// freePages returns the pages that hold nothing.
func freePages(t testing.TB, image []byte) map[uint64]bool {
	t.Helper()
	metas, err := pages.ReadMetas(bytes.NewReader(image), int64(len(image)))
	require.NoError(t, err)
	free := map[uint64]bool{}
	for page := metas.Newest.HighWater; page < uint64(len(image)/pageSize); page++ {
		free[page] = true
	}
	for page := uint64(2); page < metas.Newest.HighWater; page++ {
		if pages.IsFree(t, bytes.NewReader(image), metas.Newest, page) {
			free[page] = true
		}
	}
	return free
}

// Damage of any kind never makes the walk panic or run on; what it calls clean,
// bbolt reads without a complaint of its own.
func TestWalk_SurvivesAnyDamage(t *testing.T) {
	older, image := read(t, written(t, 10)), read(t, written(t, 12))
	random := rand.New(rand.NewPCG(3, 4))
	for i := range 600 {
		damaged := bytes.Clone(image)
		switch i % 5 {
		case 0: // a bit
			damaged[random.IntN(len(damaged))] ^= 1 << random.IntN(8)
		case 1: // junk in a header or table
			at := random.IntN(len(damaged)/pageSize) * pageSize
			for j := range 1 + random.IntN(64) {
				damaged[at+j] = byte(random.Uint32())
			}
		case 2: // an older page
			at := random.IntN(len(older)/pageSize) * pageSize
			copy(damaged[at:at+pageSize], older[at:])
		case 3: // another page
			from, to := random.IntN(len(damaged)/pageSize)*pageSize, random.IntN(len(damaged)/pageSize)*pageSize
			copy(damaged[to:to+pageSize], image[from:])
		case 4: // a number in a header
			at := random.IntN(len(damaged)/pageSize)*pageSize + random.IntN(16)
			damaged[at] = []byte{0, 1, 0x7f, 0xff}[random.IntN(4)]
		}
		items, problems := walk(t, damaged)
		if len(problems) == 0 {
			path := filepath.Join(t.TempDir(), "damaged.db")
			require.NoError(t, os.WriteFile(path, damaged, 0o600))
			require.True(t, slices.Equal(itemsOf(t, path), items), "damage %d", i)
			if metas, err := pages.ReadMetas(bytes.NewReader(damaged), int64(len(damaged))); err == nil && metas.Invalid == nil {
				requireChecked(t, path)
			}
		}
	}
}

// requireChecked runs bbolt's own check.
func requireChecked(t testing.TB, path string) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, db.View(func(tx *bbolt.Tx) error {
		for err := range tx.Check() {
			t.Error(err)
		}
		return nil
	}))
}

// Each four bytes of the input change one byte of a file.
func FuzzWalk(f *testing.F) {
	image := read(f, written(f, 3))
	f.Add([]byte{0, 16, 0, 1})
	f.Add([]byte{0, 32, 10, 255, 0, 32, 12, 1})
	f.Fuzz(func(t *testing.T, changes []byte) {
		damaged := bytes.Clone(image)
		for ; len(changes) >= 4; changes = changes[4:] {
			at := int(changes[0])<<16 | int(changes[1])<<8 | int(changes[2])
			damaged[at%len(damaged)] = changes[3]
		}
		_, _ = walk(t, damaged)
	})
}
