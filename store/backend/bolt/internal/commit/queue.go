package commit

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
)

// Write is one write on its way into the journal, and embeds a [Ticket]. Its methods are
// called by one goroutine at a time, in the order in which they stand here; Read and Stage
// once more if there was no space for the group, and there may be for its deletions. After
// [Queue.Do] it can be used again.
type Write interface {
	place() *Ticket
	// Log is the log that it is for.
	Log() Log
	// Size estimates how many bytes it adds to the journal.
	Size() int
	// Read reads what the write replaces, for Stage. Log.Prepare calls it under the
	// readers' lock.
	Read()
	// Stage checks the write against the log as it is after the writes before it, also
	// those of the same group, and adds its records to b. With an error it adds
	// nothing, and only this write fails.
	Stage(b *journal.Batch) error
	// Publish makes the durable write visible to readers.
	Publish()
}

// Log is what all writes of one type share. Only the goroutine that commits calls
// its methods.
type Log interface {
	// Prepare calls read, which reads for all writes of a group, under the readers' lock.
	Prepare(read func())
	// Commit calls publish under the readers' lock, and notifies the watches after it.
	// Nothing is staged any more.
	Commit(publish func())
	// Rollback discards what is staged.
	Rollback()
}

// The limits of a group.
const (
	// MaxWrites is the most writes in one transaction.
	MaxWrites = 1024
	// MaxBytes is the size in bytes at which a group is full.
	MaxBytes = 1 << 20
)

// maxYields is how often a goroutine that has the turn lets others run before it commits.
const maxYields = 4

// Queue commits writes in groups. All methods are safe for concurrent use.
//
// One goroutine at a time has the turn to commit. It passes the turn to a writer of the
// next group, or leaves it to the next writer that comes.
type Queue struct {
	journal journal.Journal
	onFull  func() bool
	// entries is used again by the next group. The goroutine that commits uses it.
	entries []journal.Entry

	mu     sync.Mutex // guards all below, and the tickets of groups not taken
	groups []*group   // each with tickets; empty if no goroutine has the turn
	taken  bool       // a goroutine has the turn
	closed bool
	closer chan struct{} // gets the turn once Close waits for it; has room for it
	after  func()        // called after the last commit
}

// NewQueue returns a queue of writes to j. When there is no space, the goroutine that
// commits calls onFull, unless it is nil, and tries the group again, as long as onFull
// returns true: it has made some, and may be able to make more.
func NewQueue(j journal.Journal, onFull func() bool) *Queue {
	return &Queue{journal: j, onFull: onFull}
}

// Do commits a write, and returns when it is durable and published, or has
// failed: with what Stage or [journal.Journal.Append] failed with, or [journal.ErrClosed].
//
// If ctx ends before the write is in a transaction, nothing is written, and Do
// fails with ctx's cause; after that it waits.
func (q *Queue) Do(ctx context.Context, w Write) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	t, turn, err := q.enter(w)
	if err != nil {
		return err
	}
	if !turn {
		select {
		case _, turn = <-t.group.turn:
		case <-ctx.Done():
			if q.withdraw(t) {
				return context.Cause(ctx)
			} // or its group is being committed by another goroutine
		}
	}
	if turn && q.lead(ctx, t) {
		return context.Cause(ctx)
	}
	if _, turn := <-t.group.turn; turn { // Close fails the group, which had the turn and did not take it
		q.release()
		<-t.group.turn // closed when t.err is known
	}
	return t.err
}

// enter adds a write to the last group, or to a new one if that is full. It takes the turn
// if no other goroutine has it.
func (q *Queue) enter(w Write) (t *Ticket, turn bool, err error) {
	size := w.Size()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, false, journal.ErrClosed
	}
	var g *group
	if n := len(q.groups); n > 0 {
		g = q.groups[n-1]
	}
	if g == nil || len(g.tickets) >= MaxWrites || g.size+size > MaxBytes {
		g = &group{turn: make(chan struct{}, 1)}
		q.groups = append(q.groups, g)
	}
	t = w.place()
	*t = Ticket{write: w, group: g}
	g.tickets = append(g.tickets, t)
	g.size += size
	turn, q.taken = !q.taken, true
	return t, turn, nil
}

// withdraw removes a write from its group, unless the group is being committed. A group
// without writes leaves the queue, and the turn goes on if the group had it.
func (q *Queue) withdraw(t *Ticket) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	g := t.group
	if g.taken {
		return false
	}
	g.tickets = slices.DeleteFunc(g.tickets, func(other *Ticket) bool { return other == t })
	g.size -= t.write.Size()
	if len(g.tickets) > 0 {
		return true
	}
	q.groups = slices.DeleteFunc(q.groups, func(other *group) bool { return other == g })
	select {
	case <-g.turn:
		q.pass()
	default:
	}
	return true
}

// take removes the first group from the queue and returns it, nil if there is none.
func (q *Queue) take() *group {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.groups) == 0 {
		return nil
	}
	g := q.groups[0]
	q.groups[0] = nil
	q.groups = q.groups[1:]
	g.taken = true
	return g
}

// gather lets goroutines that are ready to run go first, as long as that brings writes to
// g. Most writers of the last group, which were woken just now, write again; without it
// they find this group taken, and each group has half of the writers. A writer that is
// alone is not delayed.
func (q *Queue) gather(g *group) {
	for before, yields := 0, 0; yields < maxYields; yields++ {
		q.mu.Lock()
		n := len(g.tickets)
		q.mu.Unlock()
		if n == before {
			return
		}
		before = n
		runtime.Gosched()
	}
}

// lead commits the group of t, which is the first, unless t can be withdrawn because ctx
// has ended. The caller has the turn.
func (q *Queue) lead(ctx context.Context, t *Ticket) (withdrawn bool) {
	q.gather(t.group)
	if ctx.Err() != nil && q.withdraw(t) {
		q.release()
		return true
	}
	g := q.take()
	if g == nil { // Close has failed it
		q.release()
		return false
	}
	defer close(g.turn)
	defer q.release() // first, so that the next group does not wait until this one is awake
	q.commit(g)
	return false
}

// release gives the turn away, or ends Close if that waits no longer.
func (q *Queue) release() {
	q.mu.Lock()
	after := q.after
	if after == nil {
		q.pass()
	}
	q.mu.Unlock()
	if after != nil {
		after() // closed for good: no goroutine gets the turn
	}
}

// pass gives the turn to Close, to the first group, or to the next writer that comes. The
// caller holds the lock.
func (q *Queue) pass() {
	switch {
	case q.closer != nil:
		q.closer <- struct{}{}
	case len(q.groups) > 0:
		q.groups[0].turn <- struct{}{}
	default:
		q.taken = false
	}
}

// commit stages, appends and publishes one group. If there is no space for it, there may be for its deletions.
func (q *Queue) commit(g *group) {
	b := journal.Batch{Entries: q.entries}
	defer func() {
		clear(b.Entries)
		q.entries = b.Entries[:0]
	}()
	logs := g.read()
	staged, refused := g.stage(&b, logs)
	raised, err := q.append(b)
	if errors.Is(err, journal.ErrFull) {
		if alone := g.deletions(); len(alone) > 0 {
			defer q.commit(&group{tickets: alone})
		}
	}
	if err != nil {
		for _, l := range logs {
			l.Rollback()
		}
		staged = failWrites(staged, refused, err, raised)
	}
	if err == nil || raised {
		publish(logs, staged)
	}
}

// append writes a batch. If there is no space, it raises the floors apart from the records, which
// may not use all of it, and tries again as long as onFull makes some. raised: the floors were
// raised, whatever err says of the records.
func (q *Queue) append(b journal.Batch) (raised bool, err error) {
	if len(b.Entries) == 0 && len(b.Floors) == 0 {
		return false, nil
	}
	err = q.journal.Append(b)
	if errors.Is(err, journal.ErrFull) && len(b.Entries) > 0 && len(b.Floors) > 0 {
		if err := q.journal.Append(journal.Batch{Floors: b.Floors}); err == nil {
			raised, b.Floors = true, nil
		} else if !errors.Is(err, journal.ErrFull) {
			return false, err
		}
	}
	for errors.Is(err, journal.ErrFull) && q.onFull != nil && q.onFull() {
		err = q.journal.Append(b)
	}
	return raised, err
}

// Len returns how many writes wait for a transaction.
func (q *Queue) Len() (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, g := range q.groups {
		n += len(g.tickets)
	}
	return n
}

// Close commits what is queued, for at most timeout, and fails the rest and all later
// writes with [journal.ErrClosed]. Then it calls after. If a commit is still in progress
// when the time is over, Close fails, and that commit calls after when it ends. Close
// must be called only once.
func (q *Queue) Close(timeout time.Duration, after func()) error {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	turn := q.close()
	select {
	case <-turn:
		if q.drain(turn, timer.C) {
			q.fail()
			after()
			return nil
		}
	case <-timer.C:
	}
	q.fail()
	q.mu.Lock()
	select {
	case <-q.closer: // the commit has just ended
		q.mu.Unlock()
		after()
		return nil
	default:
		q.after = after
		q.mu.Unlock()
		return journal.ErrTimeout
	}
}

// close makes later writes fail, and returns what gets the turn.
func (q *Queue) close() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.closer = make(chan struct{}, 1)
	if !q.taken {
		q.taken = true
		q.closer <- struct{}{}
	}
	return q.closer
}

// drain commits groups until there is none or the time is over, and reports whether it has the turn
// then. If not, a commit is in progress, which gives it away when it ends.
func (q *Queue) drain(turn <-chan struct{}, over <-chan time.Time) bool {
	for {
		select {
		case <-over:
			return true
		default:
		}
		g := q.take()
		if g == nil {
			return true
		}
		go q.finish(g)
		select {
		case <-turn:
		case <-over:
			return false
		}
	}
}

// finish commits a group that was taken, tells its writers the outcome, and gives the turn away.
func (q *Queue) finish(g *group) {
	defer q.release()
	defer close(g.turn)
	q.commit(g)
}

// fail ends what is still queued.
func (q *Queue) fail() {
	for g := q.take(); g != nil; g = q.take() {
		for _, t := range g.tickets {
			t.err = journal.ErrClosed
		}
		close(g.turn)
	}
}
