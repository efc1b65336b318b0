package bolt

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
)

// load reads the log: the newest state, decoded by as many goroutines as there
// are processors, and of the history only how much there is.
func (b *Backend) load(bounds journal.Bounds) error {
	l := loading{backend: b, newest: map[string]uint64{}, started: b.clock.Now()}
	err := b.file.journal.Read(context.Background(), b.name, func(v journal.View) error {
		l.total = 2 * int(v.Bounds().Last-v.Bounds().Trimmed)
		if err := v.Scan(0, math.MaxUint64, l.index); err != nil {
			return err
		}
		l.total = max(l.total, l.done+len(l.newest))
		return l.decodeAll(v)
	})
	if err != nil {
		return err
	}
	return l.finish(bounds)
}

type loading struct {
	backend *Backend
	// newest is the record of each object that exists.
	newest  map[string]uint64
	started time.Time

	done, total int
	jobs        chan []stored
	batch       []stored

	mu          sync.Mutex // guards what the decoders find
	objects     []loaded
	undecodable []*backend.UndecodableError
	failed      error
}

// loaded is an object with its size.
type loaded struct {
	object *store.Object
	size   int
}

// progressRun is how many records are read between two calls of OnProgress.
const progressRun = 10_000

func (l *loading) progress() {
	if l.done++; l.done%progressRun == 0 && l.backend.config.OnProgress != nil {
		l.backend.config.OnProgress(l.done, max(l.done, l.total))
	}
}

// index follows each object through the log, to its newest record.
func (l *loading) index(revision uint64, r journal.Record) (bool, error) {
	l.progress()
	b := l.backend
	b.history.add(revision, int64(r.Size()), l.started)
	if r.Kind == journal.Emit {
		return true, nil
	}
	last, exists := l.newest[string(r.Key)]
	switch {
	case exists && r.Prev != last:
		return false, b.corrupt(revision, fmt.Sprintf("%q does not continue its record of revision %d", r.Key, last))
	case r.Kind == journal.Delete && !exists:
		return false, b.corrupt(revision, fmt.Sprintf("%q is deleted, and did not exist", r.Key))
	case r.Kind == journal.Delete:
		delete(l.newest, string(r.Key))
	default:
		l.newest[string(r.Key)] = revision
	}
	return true, nil
}

// loadRun is how many records a decoder is handed at once.
const loadRun = 256

// decodeAll decodes the newest records. The view is read by this goroutine alone;
// the decoders get copies.
func (l *loading) decodeAll(v journal.View) error {
	l.jobs = make(chan []stored, runtime.GOMAXPROCS(0))
	var decoders sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		decoders.Go(l.decode)
	}
	defer decoders.Wait()
	defer close(l.jobs)
	err := v.Scan(0, math.MaxUint64, func(revision uint64, r journal.Record) (bool, error) {
		if r.Kind != journal.Put || l.newest[string(r.Key)] != revision {
			return true, nil
		}
		l.progress()
		if l.batch = append(l.batch, keep(revision, r)); len(l.batch) == loadRun {
			l.jobs <- l.batch
			l.batch = nil
		}
		return true, nil
	})
	if len(l.batch) > 0 {
		l.jobs <- l.batch
	}
	return err
}

func (l *loading) decode() {
	for batch := range l.jobs {
		for _, s := range batch {
			o, undecodable := l.backend.values.decode(s)
			size, err := 0, error(nil)
			if undecodable == nil && !o.Expires.IsZero() {
				size, err = backend.Measure(&l.backend.values.schema, o)
			}
			l.mu.Lock()
			l.objects = append(l.objects, loaded{o, size})
			if undecodable != nil {
				l.undecodable = append(l.undecodable, undecodable)
			}
			if l.failed == nil {
				l.failed = err
			}
			l.mu.Unlock()
		}
	}
}

// finish makes the state of what was read.
func (l *loading) finish(bounds journal.Bounds) error {
	b := l.backend
	slices.SortFunc(l.undecodable, func(x, y *backend.UndecodableError) int { return cmp.Compare(x.Revision, y.Revision) })
	switch {
	case l.failed != nil:
		return l.failed
	case len(l.undecodable) > 0 && b.config.OnUndecodable == Fail:
		return fmt.Errorf("%d objects cannot be decoded, such as this: set OnUndecodable to Keep to open the others: %w", len(l.undecodable), l.undecodable[0])
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	slices.SortFunc(l.objects, func(x, y loaded) int { return compareStrings(x.object.Key, y.object.Key) })
	for _, o := range l.objects {
		b.tree.Put(o.object)
		if !o.object.Expires.IsZero() {
			b.expiries.Add(o.object, o.size)
		}
	}
	if len(l.undecodable) > 0 {
		b.undecodable = map[string]*backend.UndecodableError{}
		for _, u := range l.undecodable {
			b.undecodable[u.Key] = u
		}
	}
	b.revision = store.Revision(bounds.Last)
	b.floor, b.first = store.Revision(bounds.Floor), store.Revision(bounds.First)
	b.history.drop(uint64(b.oldest()))
	b.window.Reset(b.revision)
	return nil
}
