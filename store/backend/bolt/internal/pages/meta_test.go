package pages_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/pages"
)

// The numbers of a meta page, by where they are in it.
const (
	metaMagic, metaVersion, metaSizeOfPages = 16, 20, 24
	metaRoot, metaFreelist                  = 32, 48
	metaHighWater, metaTxid, metaSum        = 56, 64, 72
	metaEnd                                 = 80
)

// sealed returns an image whose meta page at an offset has another number of 32 or 64 bits, and
// the checksum that goes with it.
func sealed(image []byte, at int, field int, number any) []byte {
	changed := bytes.Clone(image)
	page := changed[at:]
	switch n := number.(type) {
	case uint32:
		binary.NativeEndian.PutUint32(page[field:], n)
	case uint64:
		binary.NativeEndian.PutUint64(page[field:], n)
	}
	sum := fnv.New64a()
	_, _ = sum.Write(page[metaMagic:metaSum])
	binary.NativeEndian.PutUint64(page[metaSum:], sum.Sum64())
	return changed
}

func TestReadMetas_SaysWhatIsWrongWithAMetaPage(t *testing.T) {
	image := read(t, written(t, 10))
	highWater := binary.NativeEndian.Uint64(image[pageSize+metaHighWater:])
	for _, c := range []struct {
		field  int
		number any
		wrong  string
	}{
		{metaMagic, uint32(1), "the magic number is missing"},
		{metaVersion, uint32(3), "meta page of version 3; only 2 is known"},
		{metaSizeOfPages, uint32(1 << 9), "impossible page size, 512"},
		{metaSizeOfPages, uint32(1 << 25), "impossible page size"},
		{metaSizeOfPages, uint32(pageSize + 1024), "impossible page size, 5120"},
		{metaSizeOfPages, uint32(1 << 10), "pages have 1024 bytes, but its position says 4096"},
		{metaSizeOfPages, uint32(1 << 24), "pages have 16777216 bytes, but its position says 4096"},
		{metaHighWater, uint64(3), "impossible number of pages, 3"},
		{metaHighWater, uint64(1<<38 + 1), "impossible number of pages"},
		{metaRoot, uint64(1), "a root page that does not exist, 1"},
		{metaRoot, highWater, "a root page that does not exist"},
		{metaFreelist, uint64(1), "a freelist that does not exist"},
		{metaFreelist, highWater, "a freelist that does not exist"},
		{metaRoot, uint64(2), ""},
		{metaRoot, highWater - 1, ""},
	} {
		t.Run(fmt.Sprint(c.field, " ", c.number), func(t *testing.T) {
			changed := sealed(image, pageSize, c.field, c.number)
			m, err := pages.ReadMetas(bytes.NewReader(changed), int64(len(changed)))
			require.NoError(t, err)
			if c.wrong == "" {
				require.Nil(t, m.Invalid)
				return
			}
			require.NotNil(t, m.Invalid)
			require.Equal(t, uint64(1), m.Invalid.Page)
			require.Contains(t, m.Invalid.What, c.wrong)
			require.Zero(t, m.Newest.Page)
		})
	}
}

func TestReadMetas_ChecksTheChecksum(t *testing.T) {
	image := read(t, written(t, 10))
	image[pageSize+metaTxid+7] ^= 1
	m, err := pages.ReadMetas(bytes.NewReader(image), int64(len(image)))
	require.NoError(t, err)
	require.Equal(t, &pages.Problem{Page: 1, What: "the checksum of the meta page is wrong"}, m.Invalid)
}

// A file may end in a meta page.
func TestReadMetas_OfAFileThatEndsInAMetaPage(t *testing.T) {
	image := read(t, written(t, 1))
	for size, what := range map[int64]string{
		metaEnd - 1:            "page 0: neither meta page is valid: the file ends before the end of this meta page",
		metaEnd:                "page 0: the file is cut off here",
		pageSize + metaEnd - 1: "page 1: the file is cut off here",
	} {
		_, err := pages.ReadMetas(bytes.NewReader(image), size)
		require.ErrorContains(t, err, what, "%d bytes", size)
	}
	clear(image[:metaEnd])
	_, err := pages.ReadMetas(bytes.NewReader(image), pageSize+metaEnd-1)
	require.ErrorContains(t, err, "neither meta page is valid")
	_, err = pages.ReadMetas(bytes.NewReader(image), pageSize+metaEnd)
	require.ErrorContains(t, err, "the file is cut off here")
}

// The least and the largest numbers of pages that there can be.
func TestReadMetas_TakesAnyNumberOfPages(t *testing.T) {
	image := read(t, written(t, 10))
	for page := range 2 {
		image = sealed(image, page*pageSize, metaRoot, uint64(2))
		image = sealed(image, page*pageSize, metaFreelist, uint64(3))
	}
	few := sealed(sealed(image, 0, metaHighWater, uint64(4)), pageSize, metaHighWater, uint64(4))
	for size, whole := range map[int64]bool{4 * pageSize: true, 4*pageSize - 1: false} {
		_, err := pages.ReadMetas(bytes.NewReader(few), size)
		require.Equal(t, whole, err == nil, "%d bytes: %v", size, err)
	}
	most := sealed(image, 0, metaHighWater, uint64(1<<38))
	m, err := pages.ReadMetas(bytes.NewReader(most), 1<<62)
	require.NoError(t, err)
	require.Nil(t, m.Invalid)
}

// Of two of one transaction bbolt takes the first.
func TestReadMetas_TakesTheFirstOfTwoOfOneTransaction(t *testing.T) {
	image := read(t, written(t, 10))
	same := sealed(image, pageSize, metaTxid, binary.NativeEndian.Uint64(image[metaTxid:]))
	m, err := pages.ReadMetas(bytes.NewReader(same), int64(len(same)))
	require.NoError(t, err)
	require.Zero(t, m.Newest.Page)
}

// sparse is a large file of zeros but for a few bytes.
type sparse struct {
	at      int64
	content []byte
}

func (s sparse) ReadAt(p []byte, at int64) (int, error) {
	clear(p)
	for i := range p {
		if n := at + int64(i) - s.at; n >= 0 && n < int64(len(s.content)) {
			p[i] = s.content[n]
		}
	}
	return len(p), nil
}

// The second meta page is found whatever the size of pages is.
func TestReadMetas_FindsTheSecondOfPagesOfAnySize(t *testing.T) {
	second := read(t, written(t, 10))[pageSize:][:metaEnd]
	for size := int64(1 << 10); size <= 1<<24; size *= 2 {
		file := sparse{size, sealed(second, 0, metaSizeOfPages, uint32(size))}
		m, err := pages.ReadMetas(file, 1<<40)
		require.NoError(t, err, "%d bytes", size)
		require.Equal(t, uint64(1), m.Newest.Page)
		require.Equal(t, size, m.Newest.PageSize)
		require.Zero(t, m.Invalid.Page)
	}
}

// A file that has no magic number where a meta page may be is another program's.
func TestReadMetas_KnowsAForeignFile(t *testing.T) {
	magic := read(t, written(t, 1))[metaMagic:metaVersion]
	foreign := func(file sparse, size int64) bool {
		_, err := pages.ReadMetas(file, size)
		require.Error(t, err)
		var problem pages.Problem
		require.ErrorAs(t, err, &problem)
		require.Contains(t, problem.What, "neither meta page is valid")
		return errors.As(err, new(pages.ForeignError))
	}
	require.True(t, foreign(sparse{}, 1<<26))
	for _, page := range []int64{0, 1 << 10, pageSize, 1 << 24} {
		file := sparse{page + metaMagic, magic}
		end := page + metaMagic + int64(len(magic))
		require.False(t, foreign(file, end), "page at %d", page)
		require.True(t, foreign(file, end-1), "page at %d, cut off", page)
	}
	require.True(t, foreign(sparse{1<<9 + metaMagic, magic}, 1<<26), "no page can be there")
}

// failingOnce fails one read.
type failingOnce struct {
	sparse
	left int
	err  error
}

func (f *failingOnce) ReadAt(p []byte, at int64) (int, error) {
	if f.left--; f.left == -1 {
		return 0, f.err
	}
	return f.sparse.ReadAt(p, at)
}

// An error of reading is not damage, wherever it comes, and what cannot be read is not foreign.
func TestReadMetas_PassesOnWhatReadingMeets(t *testing.T) {
	image := read(t, written(t, 10))
	broken := errors.New("broken")
	for left := range 2 {
		_, err := pages.ReadMetas(&failingOnce{sparse{0, image}, left, broken}, int64(len(image)))
		require.ErrorIs(t, err, broken)
	}
	const sizes = 15 // of pages
	for left := range 1 + sizes {
		_, err := pages.ReadMetas(&failingOnce{left: left, err: broken}, 1<<26)
		require.ErrorIs(t, err, broken)
	}
	_, err := pages.ReadMetas(&failingOnce{left: 1 + sizes, err: broken}, 1<<26)
	require.Error(t, err)
	require.NotErrorAs(t, err, new(pages.ForeignError))
}

func TestBegins_LooksForTheMagicNumber(t *testing.T) {
	image := read(t, written(t, 1))
	require.True(t, pages.Begins(image[:pages.BeginBytes]))
	image[metaMagic] ^= 1
	require.False(t, pages.Begins(image[:pages.BeginBytes]))
}

func TestSetNumber_WritesWhatAPageSaysItIs(t *testing.T) {
	page := tree(5, leaf)
	pages.SetNumber(page, 1<<40)
	require.Equal(t, tree(1<<40, leaf), page)
}
