package journal

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/pages"
)

// contents is what a file holds.
type contents struct {
	metas    pages.Metas
	identity Identity
	logs     map[string]*log
	// damaged are the damaged records, as far as they are listed; unlisted is how many
	// more there are.
	damaged  []CorruptError
	unlisted int
	// records is how many records all logs have, largest the bytes of the largest one.
	records int
	largest int64
	// seen is what the walk has found of each log so far.
	seen map[string]*sighting
}

// sighting is what the walk has found of one log.
type sighting struct {
	last uint64 // the bucket's sequence
	next uint64 // the revision of the history's next record, 0 if unknown
	base base
	// baseDamaged: a record of the base is damaged, so base cannot be checked.
	baseDamaged bool
	page        uint64 // of the previous record
}

// inspect walks a file and checks its contents. It fails with a [*CorruptError] or
// [*FormatError] for the first defect, except damaged records, of which it lists as many as
// asked for, and with that of ctx once it is done.
func inspect(ctx context.Context, path string, file io.ReaderAt, size int64, most int) (*contents, error) {
	var first error
	e := examination{path: path, most: most, report: func(err error) bool {
		first = err
		return false
	}}
	c, err := e.run(readerUntil{ctx, file}, size)
	if first != nil {
		return nil, first
	}
	return c, err
}

// readerUntil is a file that can be read until ctx is done.
type readerUntil struct {
	ctx context.Context
	io.ReaderAt
}

func (r readerUntil) ReadAt(p []byte, at int64) (int, error) {
	if err := context.Cause(r.ctx); err != nil {
		return 0, err
	}
	return r.ReaderAt.ReadAt(p, at)
}

// firstDamage returns the error of the first damaged record, nil if there is none.
func (c *contents) firstDamage() error {
	if len(c.damaged) == 0 {
		return nil
	}
	return &c.damaged[0]
}

// run walks a file and reports all defects except damaged records, until report returns
// false.
func (e *examination) run(file io.ReaderAt, size int64) (*contents, error) {
	c := &contents{logs: map[string]*log{}, seen: map[string]*sighting{}}
	e.contents = c
	if size == 0 {
		e.wrong(&CorruptError{Path: e.path, Page: NoPage, What: "it is empty: remove it, so that a new one is made, or restore a snapshot"})
		return c, nil
	}
	var err error
	if c.metas, err = pages.ReadMetas(file, size); err != nil {
		e.wrong(problemOf(e.path, err))
		return c, nil
	}
	err = pages.Walk(file, c.metas.Newest, func(it pages.Item) error {
		if e.stopped {
			return errStopped
		}
		e.visit(it)
		return nil
	}, func(p pages.Problem) { e.wrong(problemOf(e.path, p)) })
	if e.stopped {
		return c, nil
	}
	if err != nil {
		return c, problemOf(e.path, err)
	}
	e.finish()
	return c, nil
}

var errStopped = fmt.Errorf("%w: one problem is enough", ErrCorrupt)

// examination is a walk of a file. Errors name the file by path.
type examination struct {
	*contents
	path string
	// most is how many damaged records it lists.
	most int
	// follow, if not nil, is called with each good record. The text that it returns is
	// reported as a defect.
	follow func(log string, revision uint64, r Record) string
	report func(error) bool

	stopped bool
	damage  bool // something was reported
}

func (e *examination) wrong(err error) {
	e.damage = true
	if !e.stopped && !e.report(err) {
		e.stopped = true
	}
}

// corrupt reports damage of an item.
func (e *examination) corrupt(it pages.Item, log string, revision uint64, format string, args ...any) {
	e.wrong(&CorruptError{Path: e.path, Page: int64(it.Page), Log: log, Revision: revision, What: fmt.Sprintf(format, args...)})
}

func (e *examination) visit(it pages.Item) {
	name, isLog := logOf(it.Bucket)
	switch {
	case it.Bucket == mainBucket && it.Key != nil:
		e.main(it)
	case it.Bucket == mainBucket:
	case !isLog:
		e.wrong(&FormatError{Path: e.path})
	case it.Key == nil:
		e.enter(it, name)
	default:
		e.record(it, name)
	}
}

// main examines an item of the main bucket, which comes before all logs.
func (e *examination) main(it pages.Item) {
	name, isHead := strings.CutPrefix(string(it.Key), headKey)
	switch {
	case isHead:
		h, err := parseHead(it.Value)
		if err != nil {
			e.corrupt(it, "", 0, "%q: %v", it.Key, err)
			return
		}
		e.logs[name] = &log{head: h}
	case string(it.Key) == fileKey:
		e.file(it)
	default:
		e.corrupt(it, "", 0, "nothing is known about the key %q", it.Key)
	}
}

// file examines the identity.
func (e *examination) file(it pages.Item) {
	id, err := parseIdentity(it.Value)
	if err != nil {
		e.corrupt(it, "", 0, "%q: %v", it.Key, err)
		return
	}
	e.identity = id
	if id.Format != Format {
		e.wrong(&FormatError{Path: e.path, Format: id.Format})
	}
}

// enter begins a log.
func (e *examination) enter(it pages.Item, name string) {
	l := e.logs[name]
	if l == nil {
		e.corrupt(it, name, 0, "nothing is known about this log")
		return
	}
	l.last = it.Sequence
	if b := l.bounds(); l.last < b.Trimmed || l.last < b.Floor {
		e.corrupt(it, name, l.last, "the log ends before its floor, %d", b.Floor)
	}
	e.seen[name] = &sighting{last: it.Sequence, next: l.bounds().Trimmed + 1, page: it.Page}
}

// record checks one record of a log.
func (e *examination) record(it pages.Item, name string) {
	s := e.seen[name]
	if s == nil {
		return // reported by enter
	}
	if len(it.Key) != 8 {
		e.corrupt(it, name, 0, "the key of a record has %d bytes", len(it.Key))
		return
	}
	revision := binary.BigEndian.Uint64(it.Key)
	r, err := ParseRecord(revision, it.Value)
	switch {
	case err == nil:
	case len(e.damaged) < e.most:
		e.damaged = append(e.damaged, CorruptError{Path: e.path, Page: int64(it.Page), Log: name, Revision: revision, What: err.Error()})
	default:
		e.unlisted++
	}
	e.records++
	e.largest = max(e.largest, int64(len(it.Value)))
	if err == nil && e.follow != nil {
		if what := e.follow(name, revision, r); what != "" {
			e.corrupt(it, name, revision, "%s", what)
		}
	}
	s.page = it.Page
	switch {
	case revision < s.next && e.logs[name].trimmed >= revision:
		if err != nil {
			s.baseDamaged = true
			return
		}
		s.base.add(revision, it.Value)
	case revision != s.next:
		e.corrupt(it, name, revision, "the records before it are missing, from revision %d on", s.next)
		s.next = revision + 1
	case revision > s.last:
		e.corrupt(it, name, revision, "the log ends at %d: a page is an old one", s.last)
		s.next++
	default:
		s.next++
	}
}

// finish checks what needs the whole walk.
func (e *examination) finish() {
	if e.identity.Format == 0 && !e.damage {
		e.wrong(&FormatError{Path: e.path})
	}
	for _, name := range slices.Sorted(maps.Keys(e.logs)) {
		l, s := e.logs[name], e.seen[name]
		switch {
		case s == nil:
			e.wrong(&CorruptError{Path: e.path, Page: NoPage, Log: name, What: "the log is missing"})
		case s.next <= l.last:
			e.wrong(&CorruptError{Path: e.path, Page: int64(s.page), Log: name, Revision: s.next, What: fmt.Sprintf("the records from here to %d are missing", l.last)})
		case s.base != l.base && !s.baseDamaged:
			e.wrong(&CorruptError{Path: e.path, Page: NoPage, Log: name, What: fmt.Sprintf("the state at revision %d is not what was written: %d records of %d, or other ones", l.trimmed, s.base.count, l.base.count)})
		}
	}
}
