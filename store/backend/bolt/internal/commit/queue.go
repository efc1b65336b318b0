package commit

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
)

// Write is one write on its way into the journal. Its methods are called by one
// goroutine at a time, in the order in which they stand here.
type Write interface {
	// Log is the log that it is for.
	Log() Log
	// Size estimates how many bytes it adds to the journal.
	Size() int
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

// Queue commits writes in groups. All methods are safe for concurrent use.
type Queue struct {
	journal journal.Journal
	onFull  func() bool
	// token is in the channel while no commit is in progress.
	token chan struct{}
	// entries is used again by the next group. The goroutine that commits uses it.
	entries []journal.Entry

	mu     sync.Mutex // guards all below, and the tickets of groups not taken
	groups []*group
	closed bool
	after  func() // called after the last commit
}

// group is what is committed at once.
type group struct {
	tickets []*ticket
	writes  int // not counting those withdrawn
	size    int
	taken   bool
	done    chan struct{} // closed when the outcome is known
}

// ticket is a write in a group; write is nil if it was withdrawn.
type ticket struct {
	write Write
	group *group
	err   error // known when the group is done
}

// NewQueue returns a queue of writes to j. OnFull, if not nil, is called when
// there is no space, by the goroutine that commits; if it returns true, the group
// is tried once more.
func NewQueue(j journal.Journal, onFull func() bool) *Queue {
	q := &Queue{journal: j, onFull: onFull, token: make(chan struct{}, 1)}
	q.token <- struct{}{}
	return q
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
	t, err := q.enter(w)
	if err != nil {
		return err
	}
	select {
	case <-t.group.done:
		return t.err
	case <-q.token:
		q.lead(ctx, t)
	case <-ctx.Done():
		if q.withdraw(t) {
			return context.Cause(ctx)
		}
		<-t.group.done
		return t.err
	}
	select {
	case <-t.group.done:
		return t.err
	default:
		return context.Cause(ctx) // the write was withdrawn
	}
}

// enter adds a write to the last group, or to a new one if that is full.
func (q *Queue) enter(w Write) (*ticket, error) {
	size := w.Size()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, journal.ErrClosed
	}
	var g *group
	if n := len(q.groups); n > 0 {
		g = q.groups[n-1]
	}
	if g == nil || len(g.tickets) >= MaxWrites || g.size+size > MaxBytes && g.writes > 0 {
		g = &group{done: make(chan struct{})}
		q.groups = append(q.groups, g)
	}
	t := &ticket{write: w, group: g}
	g.tickets = append(g.tickets, t)
	g.writes++
	g.size += size
	return t, nil
}

// withdraw removes a write from its group, unless the group is being committed.
func (q *Queue) withdraw(t *ticket) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if t.group.taken {
		return false
	}
	t.group.writes--
	t.group.size -= t.write.Size()
	t.write = nil
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

// lead commits groups until that of t is done, or t is withdrawn. The caller has
// taken the token.
func (q *Queue) lead(ctx context.Context, t *ticket) {
	defer q.release()
	for !t.group.isDone() {
		if ctx.Err() != nil && q.withdraw(t) {
			return
		}
		q.commit(q.take())
	}
}

func (g *group) isDone() bool {
	select {
	case <-g.done:
		return true
	default:
		return false
	}
}

// release puts the token back, for the next writer that waits for it.
func (q *Queue) release() {
	q.mu.Lock()
	after := q.after
	q.after = nil
	q.mu.Unlock()
	if after != nil {
		after()
		return // closed for good: the token is not given back
	}
	q.token <- struct{}{}
}

// commit stages, appends and publishes one group.
func (q *Queue) commit(g *group) {
	defer close(g.done)
	b := journal.Batch{Entries: q.entries}
	defer func() {
		clear(b.Entries)
		q.entries = b.Entries[:0]
	}()
	var logs []Log
	var refused []*ticket
	staged := make([]*ticket, 0, len(g.tickets))
	for _, t := range g.tickets {
		if t.write == nil {
			continue
		}
		if t.err = t.write.Stage(&b); t.err == nil {
			staged = append(staged, t)
			logs = addLog(logs, t.write.Log())
		} else if len(staged) > 0 {
			refused = append(refused, t)
		}
	}
	if err := q.append(b); err != nil {
		for _, l := range logs {
			l.Rollback()
		}
		for _, t := range staged {
			t.err = err
		}
		for _, t := range refused { // perhaps because of writes that have now failed
			t.err = certain(err)
		}
		return
	}
	for _, l := range logs {
		l.Commit(func() { publish(staged, l) })
	}
}

// certain returns the error of a write that was refused before its group failed with
// err: nothing of it was in the batch, so its outcome is not uncertain.
func certain(err error) error {
	var failed *journal.FailedError
	if errors.As(err, &failed) && failed.Uncertain {
		return &journal.FailedError{Path: failed.Path, Cause: failed.Cause}
	}
	return err
}

// addLog adds l unless it is there; a group has few logs.
func addLog(logs []Log, l Log) []Log {
	for _, known := range logs {
		if known == l {
			return logs
		}
	}
	return append(logs, l)
}

// publish publishes the writes of one log.
func publish(staged []*ticket, l Log) {
	for _, t := range staged {
		if t.write.Log() == l {
			t.write.Publish()
		}
	}
}

// append writes a batch. If there is no space and onFull makes some, it tries once more.
func (q *Queue) append(b journal.Batch) error {
	if len(b.Entries) == 0 && len(b.Floors) == 0 {
		return nil
	}
	err := q.journal.Append(b)
	if errors.Is(err, journal.ErrFull) && q.onFull != nil && q.onFull() {
		err = q.journal.Append(b)
	}
	return err
}

// Len returns how many writes wait for a transaction.
func (q *Queue) Len() (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, g := range q.groups {
		n += g.writes
	}
	return n
}

// Close commits what is queued, for at most timeout, and fails the rest and all later
// writes with [journal.ErrClosed]. Then it calls after. If a commit is still in progress
// when the time is over, Close fails, and that commit calls after when it ends. Close
// must be called only once.
func (q *Queue) Close(timeout time.Duration, after func()) error {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-q.token:
		q.drain(timer.C)
		q.fail()
		after()
		return nil
	case <-timer.C:
	}
	q.fail()
	q.mu.Lock()
	q.after = after
	q.mu.Unlock()
	select {
	case <-q.token: // the commit has just ended
		q.release()
		return nil
	default:
		return journal.ErrTimeout
	}
}

// drain commits groups until there is none or the time is over.
func (q *Queue) drain(over <-chan time.Time) {
	for {
		select {
		case <-over:
			return
		default:
		}
		g := q.take()
		if g == nil {
			return
		}
		q.commit(g)
	}
}

// fail ends what is still queued.
func (q *Queue) fail() {
	for g := q.take(); g != nil; g = q.take() {
		for _, t := range g.tickets {
			t.err = journal.ErrClosed
		}
		close(g.done)
	}
}
