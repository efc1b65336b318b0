package pages

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Item is a key with its value.
type Item struct {
	// Bucket is the name of the bucket at the top that it is in.
	Bucket string
	// Sequence is that bucket's.
	Sequence uint64
	// Key and Value are valid until the visitor returns. An item without a Key
	// is the bucket itself, before the first of its own.
	Key, Value []byte
	// Page is the leaf page that it is on.
	Page uint64
}

// maxDepth is far more than a tree of 2^64 keys has.
const maxDepth = 64

// Walk visits all pages and items of the state that m begins, buckets and items
// in order. It reports what is wrong, and goes on with what can be read all the same. Both
// functions may be nil. It fails if reading does, or with what visit returns.
//
// The file must not be written meanwhile. It takes one read of each page, whatever pages refer
// to it, three bits of memory for each, and the pages from the root to one leaf.
func Walk(f io.ReaderAt, m Meta, visit func(Item) error, report func(Problem)) error {
	w := &walker{
		reader: reader{file: f, meta: m},
		visit:  visit, report: report,
		used: newSet(m.HighWater), seen: newSet(m.HighWater),
	}
	return w.walk()
}

type walker struct {
	reader
	visit  func(Item) error
	report func(Problem)
	used   set
	seen   set // pages at which a part of a tree begins, or is said to
	// levels are the pages on the way from the root to the one that is being visited.
	levels []*level
}

// level has one page of a depth, and is used again for the next page of that depth.
type level struct {
	page     []byte
	elements []element // whose bytes are in page, or in that of the level above
}

// level returns that of a depth, which is at most one more than there are.
func (w *walker) level(depth int) *level {
	if depth == len(w.levels) {
		w.levels = append(w.levels, &level{})
	}
	return w.levels[depth]
}

// top is the bucket at the top that is walked; its name is empty outside all.
type top struct {
	name     string
	sequence uint64
}

// span bounds the keys of a page: from least on, and below end unless that is
// nil.
type span struct{ least, end []byte }

func (w *walker) walk() error {
	free, err := w.freelist()
	if err != nil {
		return err
	}
	if err := w.page(w.meta.Root, top{}, span{}, 0); err != nil {
		return err
	}
	w.partition(free)
	return nil
}

// problem reports err if it is a [Problem], and returns it if not: a failed read.
func (w *walker) problem(err error) error {
	var p Problem
	if !errors.As(err, &p) {
		return err
	}
	w.wrong(p.Page, "%s", p.What)
	return nil
}

// wrong reports a problem of a page.
func (w *walker) wrong(id uint64, format string, args ...any) {
	if w.report != nil {
		w.report(Problem{id, fmt.Sprintf(format, args...)})
	}
}

// claim marks a page and those that belong to it as used, and reports whether
// they were not.
func (w *walker) claim(id uint64, h header) bool {
	for p := id; p <= id+h.overflow; p++ {
		if !w.used.add(p) {
			w.wrong(p, "it is used twice")
			return false
		}
	}
	return true
}

func (w *walker) freelist() ([]uint64, error) {
	h, free, err := w.readFreelist(w.meta.Freelist)
	if err != nil {
		return nil, w.problem(err)
	}
	w.claim(w.meta.Freelist, h)
	return free, nil
}

// partition checks that each page is used or free, and none both.
func (w *walker) partition(free []uint64) {
	isFree := newSet(w.meta.HighWater)
	for _, id := range free {
		switch {
		case !w.meta.holds(id):
			w.wrong(id, "it is on the freelist and does not exist")
		case w.used.has(id):
			w.wrong(id, "it is used and on the freelist")
		case !isFree.add(id):
			w.wrong(id, "it is on the freelist twice")
		}
	}
	for id := uint64(2); id < w.meta.HighWater; id++ {
		if !w.used.has(id) && !isFree.has(id) {
			w.wrong(id, "it is neither used nor free")
		}
	}
}

// page walks the tree below a branch or leaf page.
func (w *walker) page(id uint64, in top, keys span, depth int) error {
	if !w.seen.add(id) {
		w.wrong(id, "it is used twice")
		return nil
	}
	at := w.level(depth)
	h, page, size, err := w.readTable(id, at.page)
	at.page = page
	if err != nil {
		return w.problem(err)
	}
	if !w.claim(id, h) {
		return nil
	}
	if page, err = w.readMore(id, page, size); err != nil {
		return w.problem(err)
	}
	at.page = page
	all, what := elements(h, page, at.elements)
	if what == "" {
		at.elements = all
		what = unordered(all, keys)
	}
	switch {
	case what != "":
	case h.flags == leafPage:
		return w.leaf(id, all, in, depth)
	case len(all) == 0:
		what = "a branch without children"
	case depth == maxDepth:
		what = "the tree is too deep"
	default:
		return w.branch(id, all, in, keys, depth)
	}
	w.wrong(id, "%s", what)
	return nil
}

// unordered says what is wrong with the order of the keys.
func unordered(all []element, keys span) string {
	for i, e := range all {
		switch {
		case i > 0 && bytes.Compare(all[i-1].key, e.key) >= 0:
			return fmt.Sprintf("element %d of %d is not in the order of keys", i, len(all))
		case i == 0 && bytes.Compare(e.key, keys.least) < 0:
			return "its first key belongs on another page"
		case keys.end != nil && bytes.Compare(e.key, keys.end) >= 0:
			return fmt.Sprintf("the key of element %d of %d belongs on another page", i, len(all))
		}
	}
	return ""
}

func (w *walker) branch(id uint64, all []element, in top, keys span, depth int) error {
	for i, e := range all {
		if !w.meta.holds(e.child) {
			w.wrong(id, "its child %d does not exist", e.child)
			continue
		}
		below := span{least: e.key, end: keys.end}
		if i+1 < len(all) {
			below.end = all[i+1].key
		}
		if err := w.page(e.child, in, below, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) leaf(id uint64, all []element, in top, depth int) error {
	for _, e := range all {
		var err error
		switch {
		case e.isBucket:
			err = w.bucket(id, e, in, depth)
		case w.visit != nil:
			err = w.visit(Item{Bucket: in.name, Sequence: in.sequence, Key: e.key, Value: e.value, Page: id})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bucketHeader is the size of a bucket's root and sequence. A small bucket has
// its page right after it, and no root.
const bucketHeader = 16

func (w *walker) bucket(id uint64, e element, in top, depth int) error {
	if len(e.value) < bucketHeader {
		w.wrong(id, "bucket %q is cut off", e.key)
		return nil
	}
	root := native.Uint64(e.value)
	if in.name == "" {
		in = top{name: string(e.key), sequence: native.Uint64(e.value[8:])}
		if w.visit != nil {
			if err := w.visit(Item{Bucket: in.name, Sequence: in.sequence, Page: id}); err != nil {
				return err
			}
		}
	}
	switch {
	case depth == maxDepth:
		w.wrong(id, "the buckets are too deep")
	case root == 0:
		return w.inline(id, e, in, depth)
	case len(e.value) != bucketHeader:
		w.wrong(id, "bucket %q has a root and something after it", e.key)
	case !w.meta.holds(root):
		w.wrong(id, "the root of bucket %q, page %d, does not exist", e.key, root)
	default:
		return w.page(root, in, span{}, depth+1)
	}
	return nil
}

// inline walks a bucket that is inside the page of its parent.
func (w *walker) inline(id uint64, e element, in top, depth int) error {
	page := e.value[bucketHeader:]
	if len(page) < headerSize {
		w.wrong(id, "bucket %q is cut off", e.key)
		return nil
	}
	h := parseHeader(page)
	if h.flags != leafPage || headerSize+h.count*elementSize > len(page) {
		w.wrong(id, "bucket %q is not a page inside its element", e.key)
		return nil
	}
	at := w.level(depth + 1)
	all, what := elements(h, page, at.elements)
	if what == "" {
		at.elements = all
		what = unordered(all, span{})
	}
	if what != "" {
		w.wrong(id, "in bucket %q: %s", e.key, what)
		return nil
	}
	return w.leaf(id, all, in, depth+1)
}

// set is a set of pages.
type set []uint64

func newSet(pages uint64) set { return make(set, pages/64+1) }

func (s set) has(page uint64) bool { return s[page/64]&(1<<(page%64)) != 0 }

// add reports whether page was not in the set.
func (s set) add(page uint64) bool {
	if s.has(page) {
		return false
	}
	s[page/64] |= 1 << (page % 64)
	return true
}
