package bolt_test

import (
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journaltest"
)

// slowToDeclare is a journal that waits before it declares the log "more".
type slowToDeclare struct {
	*journaltest.Faulty
	entered, wait chan struct{}
}

func (s *slowToDeclare) Declare(name string, first uint64) (journal.Bounds, error) {
	if name == "more" {
		close(s.entered)
		<-s.wait
	}
	return s.Faulty.Declare(name, first)
}

// Close waits for it, as a journal waits for what it is writing.
func (s *slowToDeclare) Close() error {
	<-s.wait
	return s.Faulty.Close()
}

// A type that New has not read yet has no history to give up for space, which is not an error.
func TestWrite_MakesSpaceBesideATypeThatIsBeingOpened(t *testing.T) {
	slow := &slowToDeclare{entered: make(chan struct{}), wait: make(chan struct{})}
	var told []error
	f := newFixture(t, func(f *fixture) {
		f.opts.OnError = func(err error) { told = append(told, err) }
		f.wrap = func(j journal.Journal) journal.Journal {
			slow.Faulty = journaltest.NewFaulty(j, f.path)
			return slow
		}
	})
	var opening sync.WaitGroup
	opening.Go(func() {
		if _, err := bolt.New(f.file, "more", f.cfg); err != nil {
			t.Error(err)
		}
	})
	<-slow.entered
	slow.Add(journaltest.Fault{Err: &journal.FullError{Path: f.path, Cause: syscall.ENOSPC}})
	_, err := f.Put(f.ctx, draft("a", "1"), nil, backend.PutOptions{})
	require.ErrorIs(t, err, journal.ErrFull)
	require.Empty(t, told)
	close(slow.wait)
	opening.Wait()
}
