package commit_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/commit"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journaltest"
)

// fixture is a queue to a journal that can fail, with the log "pods".
type fixture struct {
	testing.TB
	ctx context.Context
	*commit.Queue
	journal *journaltest.Faulty
	pods    *counters
}

func newFixture(t testing.TB, onFull func() bool) *fixture {
	t.Helper()
	path := filepath.Join(t.TempDir(), "state.db")
	file, err := journal.Open(path, journal.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = file.Close() })
	f := &fixture{TB: t, ctx: context.Background(), journal: journaltest.NewFaulty(file, path)}
	f.Queue = commit.NewQueue(f.journal, onFull)
	f.pods = f.declare("pods")
	return f
}

func (f *fixture) declare(name string) *counters {
	b, err := f.journal.Declare(name, 1)
	require.NoError(f, err)
	return &counters{name: name, staged: map[string]int{}, shown: map[string]int{}, last: b.Last, stagedLast: b.Last}
}

// counters is a log of counters by key.
type counters struct {
	name       string
	staged     map[string]int // what is not shown yet
	stagedLast uint64

	mu      sync.Mutex
	shown   map[string]int
	last    uint64
	commits int
	// reads and published count the calls of the writes.
	reads, published int
}

func (c *counters) Prepare(read func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	read()
}

func (c *counters) Commit(publish func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	publish()
	c.commits++
	clear(c.staged)
}

func (c *counters) Rollback() {
	clear(c.staged)
	c.stagedLast = c.last
}

func (c *counters) get(key string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shown[key]
}

// set sets a counter that is at from to the next number.
type set struct {
	commit.Ticket
	log      *counters
	key      string
	from     int
	size     int
	at       int // before the group
	revision uint64
	deletes  bool // the record of the number is a deletion
}

var errConflict = errors.New("conflict")

func (s *set) Log() commit.Log { return s.log }
func (s *set) Size() int       { return max(s.size, 1) }

func (s *set) Read() {
	s.at = s.log.shown[s.key]
	s.log.reads++
}

func (s *set) Stage(b *journal.Batch) error {
	at, staged := s.log.staged[s.key]
	if !staged {
		at = s.at
	}
	if at != s.from {
		return fmt.Errorf("%w: %s is at %d", errConflict, s.key, at)
	}
	s.log.staged[s.key] = s.from + 1
	s.log.stagedLast++
	s.revision = s.log.stagedLast
	r := journal.Record{Kind: journal.Put, Key: []byte(s.key), Value: make([]byte, s.size)}
	if s.deletes {
		r.Kind = journal.Delete
	}
	b.Entries = append(b.Entries, journal.Entry{Log: s.log.name, Revision: s.revision, Data: r.AppendTo(nil, s.revision)})
	return nil
}

func (s *set) Publish() {
	s.log.shown[s.key] = s.from + 1
	s.log.last = s.revision
	s.log.published++
}

func (f *fixture) set(key string, from int) error {
	return f.Do(f.ctx, &set{log: f.pods, key: key, from: from})
}

// during runs fn while a write hangs in the journal, and returns that write's
// error.
func (f *fixture) during(fault journaltest.Fault, fn func()) error {
	f.Helper()
	entered, wait, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	fault.Entered, fault.Wait = entered, wait
	f.journal.Add(fault)
	go func() { done <- f.set("hanging", f.pods.get("hanging")) }()
	<-entered
	fn()
	close(wait)
	return <-done
}

// start makes writes, from zero, in goroutines of their own, one after the other,
// and returns when all are queued, with a function that waits for their errors.
func (f *fixture) start(ctx context.Context, keys ...string) (wait func() []error) {
	f.Helper()
	queued := f.Len()
	errs := make([]error, len(keys))
	var wg sync.WaitGroup
	for i, key := range keys {
		wg.Go(func() { errs[i] = f.Do(ctx, &set{log: f.pods, key: key}) })
		require.Eventually(f, func() bool { return f.Len() == queued+i+1 }, time.Minute, 50*time.Microsecond)
	}
	return func() []error { wg.Wait(); return errs }
}
