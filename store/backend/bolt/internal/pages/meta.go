package pages

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
)

const (
	magic       = 0xED0CDAED
	version     = 2
	headerSize  = 16
	metaSize    = 64
	elementSize = 16

	// The sizes of pages that exist.
	minPageSize = 1 << 10
	maxPageSize = 1 << 24
)

// The flags of a page, which are its kind.
const (
	branchPage   = 0x01
	leafPage     = 0x02
	metaPage     = 0x04
	freelistPage = 0x10
)

// native is the byte order of the file: bbolt writes its structs as they are in
// memory.
var native = binary.NativeEndian

// Problem is a defect of a file.
type Problem struct {
	// Page is the number of the page.
	Page uint64
	// What says what is wrong with it.
	What string
}

func (p Problem) Error() string { return fmt.Sprintf("page %d: %s", p.Page, p.What) }

// ForeignError is the [Problem] of a file in which no page is marked as a meta page: it is of
// another format, or its beginning was lost.
type ForeignError struct{ Problem }

// Unwrap returns the problem.
func (e ForeignError) Unwrap() error { return e.Problem }

// Meta is the contents of a meta page: where one state of the file begins.
type Meta struct {
	// Page is 0 or 1, where the meta page itself is.
	Page uint64
	// PageSize is the size of all pages in bytes.
	PageSize int64
	// Root is the page of the root bucket, Freelist that of the freelist.
	Root, Freelist uint64
	// HighWater is the number of pages that are in use or free.
	HighWater uint64
	// Txid is the transaction that wrote it.
	Txid uint64

	// headed: the header of the page is right.
	headed bool
}

// Size returns how long the file must be at least, in bytes.
func (m Meta) Size() int64 { return int64(m.HighWater) * m.PageSize }

// Metas is the contents of both meta pages.
type Metas struct {
	// Newest is the valid meta page with the highest transaction.
	Newest Meta
	// Invalid is what is wrong with the other meta page, or with the header of either;
	// nil if nothing. It comes from an interrupted commit or from damage, and has no
	// consequence.
	Invalid *Problem
}

// ReadMetas reads the meta pages of a file of size bytes. It fails with a
// [Problem] if neither is valid, which may be a [ForeignError], or if the file is shorter
// than the newest says, and with the error of reading, if that fails.
func ReadMetas(f io.ReaderAt, size int64) (Metas, error) {
	first, problem, err := readMeta(f, 0, 0, size)
	if err != nil {
		return Metas{}, err
	}
	var all Metas
	if problem == nil {
		all, err = choose(f, first, size)
	} else {
		all, err = searchSecondMeta(f, *problem, size)
	}
	if err != nil {
		return Metas{}, err
	}
	if m := all.Newest; int64(m.HighWater) > size/m.PageSize {
		cut := uint64(size / m.PageSize)
		return Metas{}, Problem{Page: cut, What: fmt.Sprintf("the file is cut off here: it has %d bytes of at least %d pages of %d, and nothing is read of it until a copy is extended to %d bytes, for example with truncate", size, m.HighWater, m.PageSize, m.Size())}
	}
	return all, nil
}

// choose returns the newer of the first meta page and the second, as bbolt
// would.
func choose(f io.ReaderAt, first Meta, size int64) (Metas, error) {
	second, invalid, err := readMeta(f, 1, first.PageSize, size)
	if err != nil {
		return Metas{}, err
	}
	all := Metas{Newest: first, Invalid: invalid}
	if invalid == nil && second.Txid > first.Txid {
		all.Newest = second
	}
	for _, m := range []Meta{first, second} {
		if all.Invalid == nil && !m.headed {
			all.Invalid = &Problem{Page: m.Page, What: "the header of the meta page is wrong"}
		}
	}
	return all, nil
}

// searchSecondMeta looks for the second meta page at each possible page size, since the
// first, which has the given problem, does not give the size.
func searchSecondMeta(f io.ReaderAt, first Problem, size int64) (Metas, error) {
	for pageSize := int64(minPageSize); pageSize <= maxPageSize; pageSize *= 2 {
		m, problem, err := readMeta(f, 1, pageSize, size)
		if err != nil {
			return Metas{}, err
		}
		if problem == nil {
			return Metas{Newest: m, Invalid: &first}, nil
		}
	}
	neither := Problem{Page: 0, What: "neither meta page is valid: " + first.What}
	if !hasMagic(f, size) {
		return Metas{}, ForeignError{neither}
	}
	return Metas{}, neither
}

// hasMagic reports whether the file has the magic number where a meta page may have it.
func hasMagic(f io.ReaderAt, size int64) bool {
	has := func(page int64) bool {
		var number [4]byte
		at := page + headerSize
		if at+int64(len(number)) > size {
			return false
		}
		_, err := f.ReadAt(number[:], at)
		return err != nil || native.Uint32(number[:]) == magic
	}
	for pageSize := int64(minPageSize); pageSize <= maxPageSize; pageSize *= 2 {
		if has(pageSize) {
			return true
		}
	}
	return has(0)
}

// BeginBytes is how many bytes of a file [Begins] needs.
const BeginBytes = headerSize + 4

// Begins reports whether the first [BeginBytes] of a file have the magic number of its first
// meta page.
func Begins(begin []byte) bool { return native.Uint32(begin[headerSize:]) == magic }

// readMeta reads the meta page with that number. A pageSize of zero allows any.
func readMeta(f io.ReaderAt, number uint64, pageSize, size int64) (m Meta, problem *Problem, err error) {
	at := int64(number) * pageSize
	if at+headerSize+metaSize > size {
		return m, &Problem{Page: number, What: "the file ends before the end of this meta page"}, nil
	}
	var page [headerSize + metaSize]byte
	if _, err := f.ReadAt(page[:], at); err != nil {
		return m, nil, fmt.Errorf("cannot read meta page %d: %w", number, err)
	}
	m, what := parseMeta(page[:], number, pageSize)
	if what != "" {
		return m, &Problem{Page: number, What: what}, nil
	}
	return m, nil, nil
}

// parseMeta parses a meta page, or returns what is wrong with it.
func parseMeta(page []byte, number uint64, pageSize int64) (m Meta, what string) {
	body := page[headerSize:]
	m = Meta{
		Page:      number,
		PageSize:  int64(native.Uint32(body[8:])),
		Root:      native.Uint64(body[16:]),
		Freelist:  native.Uint64(body[32:]),
		HighWater: native.Uint64(body[40:]),
		Txid:      native.Uint64(body[48:]),
		headed:    native.Uint64(page) == number && native.Uint16(page[8:]) == metaPage,
	}
	sum := fnv.New64a()
	_, _ = sum.Write(body[:56])
	switch {
	case native.Uint32(body) != magic:
		return m, "it is not a meta page: the magic number is missing"
	case native.Uint32(body[4:]) != version:
		return m, fmt.Sprintf("meta page of version %d; only %d is known", native.Uint32(body[4:]), version)
	case native.Uint64(body[56:]) != sum.Sum64():
		return m, "the checksum of the meta page is wrong"
	case m.PageSize < minPageSize || m.PageSize > maxPageSize || m.PageSize&(m.PageSize-1) != 0:
		return m, fmt.Sprintf("the meta page has an impossible page size, %d", m.PageSize)
	case pageSize != 0 && m.PageSize != pageSize:
		return m, fmt.Sprintf("the meta page says that pages have %d bytes, but its position says %d", m.PageSize, pageSize)
	case m.HighWater < 4 || m.HighWater > 1<<62/maxPageSize:
		return m, fmt.Sprintf("the meta page has an impossible number of pages, %d", m.HighWater)
	case !m.holds(m.Root):
		return m, fmt.Sprintf("the meta page names a root page that does not exist, %d", m.Root)
	case !m.holds(m.Freelist):
		return m, "the meta page names a freelist that does not exist"
	}
	return m, ""
}

// holds reports whether a page with that number may hold data.
func (m Meta) holds(page uint64) bool { return page >= 2 && page < m.HighWater }

// SetNumber writes its number into the header of a page.
func SetNumber(page []byte, number uint64) { native.PutUint64(page, number) }
