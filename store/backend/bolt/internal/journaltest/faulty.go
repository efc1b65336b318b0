package journaltest

import (
	"sync"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
)

// Phase is where in a write a fault strikes.
type Phase int

// The phases of a write.
const (
	// Before: nothing has reached the disk.
	Before Phase = iota
	// After: all of it has reached the disk, and only then the write fails.
	After
)

// Fault is one thing that goes wrong.
type Fault struct {
	// Phase is when.
	Phase Phase
	// Err is the error of the write, such as a [*journal.FullError], after which writes
	// succeed again, or a [*journal.FailedError], after which none does. Nil lets it
	// succeed.
	Err error
	// Wait delays the write until the channel is closed; nil does not delay it.
	Wait <-chan struct{}
	// Entered is closed when the write has reached Wait. Optional.
	Entered chan<- struct{}
}

// Faulty is a journal whose writes fail by the faults that were added, one each, in
// order.
type Faulty struct {
	journal.Journal
	path string

	mu     sync.Mutex
	faults []Fault
	failed error
	writes int
}

// NewFaulty returns a journal that behaves as j until faults are added.
func NewFaulty(j journal.Journal, path string) *Faulty { return &Faulty{Journal: j, path: path} }

// Add adds faults for the writes to come, one each.
func (f *Faulty) Add(faults ...Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, faults...)
}

// Writes returns how many appends there were.
func (f *Faulty) Writes() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writes
}

// next returns the fault of a write, or the error of an earlier write after which none
// succeeds.
func (f *Faulty) next() (Fault, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writes++
	if f.failed != nil {
		return Fault{}, f.failed
	}
	if len(f.faults) == 0 {
		return Fault{}, nil
	}
	fault := f.faults[0]
	f.faults = f.faults[1:]
	if failed, ok := fault.Err.(*journal.FailedError); ok {
		f.failed = &journal.FailedError{Path: f.path, Cause: failed.Cause}
	}
	return fault, nil
}

// write runs fn, which writes, with its fault.
func (f *Faulty) write(fn func() error) error {
	fault, err := f.next()
	if err != nil {
		return err
	}
	if fault.Entered != nil {
		close(fault.Entered)
	}
	if fault.Wait != nil {
		<-fault.Wait
	}
	if fault.Phase == Before && fault.Err != nil {
		return fault.Err
	}
	if err := fn(); err != nil {
		return err
	}
	return fault.Err
}

// Append writes a batch, unless its fault prevents that.
func (f *Faulty) Append(b journal.Batch) error {
	return f.write(func() error { return f.Journal.Append(b) })
}

// Trim trims, unless its fault prevents that.
func (f *Faulty) Trim(name string, b journal.Budget) (t journal.Trimmed, err error) {
	err = f.write(func() (err error) {
		t, err = f.Journal.Trim(name, b)
		return err
	})
	return t, err
}
