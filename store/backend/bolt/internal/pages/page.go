package pages

import (
	"fmt"
	"io"
	"slices"
)

// header is the beginning of every page.
type header struct {
	id       uint64
	flags    uint16
	count    int
	overflow uint64 // how many more pages belong to this one
}

func parseHeader(page []byte) header {
	return header{
		id:       native.Uint64(page),
		flags:    native.Uint16(page[8:]),
		count:    int(native.Uint16(page[10:])),
		overflow: uint64(native.Uint32(page[12:])),
	}
}

// element is one entry of a branch or leaf page; key and value lie in the page.
type element struct {
	key, value []byte
	child      uint64 // of a branch
	isBucket   bool   // of a leaf
}

// reader reads the pages below a high-water mark.
type reader struct {
	file io.ReaderAt
	meta Meta
}

// readTable reads the header and the table of a branch or leaf page into buffer, or into a
// larger one if that is too small, and returns how many bytes the page has, for readMore. It
// returns what it has used of the buffer, even after an error.
func (r reader) readTable(id uint64, buffer []byte) (h header, page []byte, size int64, err error) {
	page = slices.Grow(buffer[:0], int(r.meta.PageSize))[:r.meta.PageSize]
	if h, err = r.readFirst(id, page); err != nil {
		return h, page, 0, err
	}
	if h.flags != branchPage && h.flags != leafPage {
		return h, page, 0, Problem{id, fmt.Sprintf("it is not part of a tree: its flags are %#x", h.flags)}
	}
	table := headerSize + int64(h.count)*elementSize
	if table > r.length(h) {
		return h, page, 0, Problem{id, fmt.Sprintf("%d elements do not fit", h.count)}
	}
	if page, err = r.readMore(id, page, table); err != nil {
		return h, page, 0, err
	}
	size = treeSize(h, page)
	if fits := (size + r.meta.PageSize - 1) / r.meta.PageSize * r.meta.PageSize; fits != r.length(h) {
		return h, page, 0, Problem{id, fmt.Sprintf("its elements have %d bytes, its pages %d", size, r.length(h))}
	}
	return h, page, size, nil
}

// length returns the bytes of a page with its overflow pages.
func (r reader) length(h header) int64 { return int64(h.overflow+1) * r.meta.PageSize }

// readFirst fills page with the first page at id.
func (r reader) readFirst(id uint64, page []byte) (header, error) {
	if _, err := r.file.ReadAt(page, int64(id)*r.meta.PageSize); err != nil {
		return header{}, fmt.Errorf("cannot read page %d: %w", id, err)
	}
	h := parseHeader(page)
	switch {
	case h.id != id:
		return h, Problem{id, fmt.Sprintf("it says that it is page %d", h.id)}
	case h.overflow >= r.meta.HighWater-id:
		return h, Problem{id, fmt.Sprintf("it reaches over the end, with %d more pages", h.overflow)}
	}
	return h, nil
}

// readMore returns at least the first length bytes of the pages at id. have are those
// that were read before; it reads the others.
func (r reader) readMore(id uint64, have []byte, length int64) ([]byte, error) {
	more := length - int64(len(have))
	if more <= 0 {
		return have, nil
	}
	all := slices.Grow(have, int(more))[:length]
	at := int64(id)*r.meta.PageSize + int64(len(have))
	if _, err := r.file.ReadAt(all[len(have):], at); err != nil {
		return have, fmt.Errorf("cannot read page %d: %w", id, err)
	}
	return all, nil
}

// treeSize returns the bytes of a page's header, table and elements, by the sizes in the
// table, which must be in page.
func treeSize(h header, page []byte) int64 {
	size := headerSize + int64(h.count)*elementSize
	for i := range h.count {
		_, key, value := sizesOf(h, page, i)
		size += key + value
	}
	return size
}

// sizesOf returns the offset of the i-th element's key in the page, and the sizes of its
// key and value, as the table has them.
func sizesOf(h header, page []byte, i int) (at, key, value int64) {
	start := headerSize + i*elementSize
	e := page[start:]
	if h.flags == branchPage {
		return int64(start) + int64(native.Uint32(e)), int64(native.Uint32(e[4:])), 0
	}
	return int64(start) + int64(native.Uint32(e[4:])), int64(native.Uint32(e[8:])), int64(native.Uint32(e[12:]))
}

// elements returns the elements of a page, in buffer if that is large enough, or what is
// wrong with it. Their data must follow the table in order and without gaps, as bbolt
// writes it.
func elements(h header, page []byte, buffer []element) ([]element, string) {
	all := slices.Grow(buffer[:0], h.count)[:h.count]
	next := int64(headerSize + h.count*elementSize)
	for i := range all {
		at, key, value := sizesOf(h, page, i)
		if at != next || at+key+value > int64(len(page)) {
			return nil, fmt.Sprintf("element %d of %d is not where it belongs", i, h.count)
		}
		if key == 0 {
			return nil, fmt.Sprintf("element %d of %d has no key", i, h.count)
		}
		all[i].key = page[at : at+key : at+key]
		all[i].value = page[at+key : at+key+value : at+key+value]
		next = at + key + value
		e := page[headerSize+i*elementSize:]
		if h.flags == branchPage {
			all[i].child = native.Uint64(e[8:])
			continue
		}
		flags := native.Uint32(e)
		if flags > 1 {
			return nil, fmt.Sprintf("element %d of %d has unknown flags, %#x", i, h.count, flags)
		}
		all[i].isBucket = flags == 1
	}
	return all, ""
}

// Free returns the numbers of the pages that the state that m begins does not use, in order.
// It fails with a [Problem] if the freelist is damaged, and with the error of reading.
func Free(f io.ReaderAt, m Meta) ([]uint64, error) {
	_, free, err := reader{file: f, meta: m}.readFreelist(m.Freelist)
	slices.Sort(free)
	if n := len(free); n > 0 && !(m.holds(free[0]) && m.holds(free[n-1])) {
		return nil, Problem{m.Freelist, "the freelist has pages that do not exist"}
	}
	return free, err
}

// readFreelist returns the header of the freelist page at id, and the numbers of the free
// pages.
func (r reader) readFreelist(id uint64) (h header, free []uint64, err error) {
	page := make([]byte, r.meta.PageSize)
	if h, err = r.readFirst(id, page); err != nil {
		return h, nil, err
	}
	if h.flags != freelistPage {
		return h, nil, Problem{id, fmt.Sprintf("it is not a freelist: its flags are %#x", h.flags)}
	}
	count, start := uint64(h.count), int64(headerSize)
	if h.count == 0xFFFF { // the true number is the first element
		count, start = native.Uint64(page[headerSize:]), headerSize+8
	}
	if count > r.meta.HighWater || start+int64(count)*8 > r.length(h) {
		return h, nil, Problem{id, fmt.Sprintf("a freelist of %d pages does not fit", count)}
	}
	if page, err = r.readMore(id, page, start+int64(count)*8); err != nil {
		return h, nil, err
	}
	free = make([]uint64, count)
	for i := range free {
		free[i] = native.Uint64(page[start+int64(i)*8:])
	}
	return h, free, nil
}
