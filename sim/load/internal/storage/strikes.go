package storage

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/watchmill/watchmill/sim/pace"
	"github.com/watchmill/watchmill/sim/scenario"
)

// ErrInjected is what calls fail with that a fault strikes.
var ErrInjected = errors.New("failed by the scenario")

// strikes are the faults that hold at present, for calls of the storage to meet.
type strikes struct {
	// present is replaced as a whole, so that calls take no lock.
	present atomic.Pointer[[]*Strike]
	mu      sync.Mutex // held while it is replaced
	// calls numbers those of each operation.
	calls map[scenario.Operation]*atomic.Uint64
}

// Strike is one fault while it holds.
type Strike struct {
	fault  *scenario.Fault
	struck atomic.Uint64
	// over is closed when it holds no longer.
	over chan struct{}
}

func newStrikes() *strikes {
	s := &strikes{calls: map[scenario.Operation]*atomic.Uint64{}}
	for _, op := range scenario.Operations {
		s.calls[op] = &atomic.Uint64{}
	}
	s.present.Store(&[]*Strike{})
	return s
}

// Struck returns how many calls it has struck.
func (st *Strike) Struck() uint64 { return st.struck.Load() }

// Begin makes the fault hold.
func (s *strikes) Begin(f *scenario.Fault) *Strike {
	st := &Strike{fault: f, over: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	next := append(slices.Clone(*s.present.Load()), st)
	s.present.Store(&next)
	return st
}

// End ends what Begin began.
func (s *strikes) End(st *Strike) {
	s.mu.Lock()
	next := slices.DeleteFunc(slices.Clone(*s.present.Load()), func(other *Strike) bool { return other == st })
	s.present.Store(&next)
	s.mu.Unlock()
	close(st.over)
}

// meet takes a call through the faults that strike it: it may take longer, hang
// until a fault is over, or fail.
func (s *strikes) meet(ctx context.Context, op scenario.Operation) error {
	for _, st := range s.striking(op) {
		var err error
		switch st.fault.Kind {
		case scenario.FaultFail:
			err = ErrInjected
		case scenario.FaultDelay:
			err = pace.Sleep(ctx, st.fault.Delay)
		case scenario.FaultStick:
			select {
			case <-st.over:
			case <-ctx.Done():
				err = context.Cause(ctx)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// striking returns the faults that strike this call. To the next of a watch, which
// must not wait, a delay means nothing.
func (s *strikes) striking(op scenario.Operation) (struck []*Strike) {
	present := *s.present.Load()
	if len(present) == 0 {
		return nil
	}
	number := s.calls[op].Add(1) - 1
	for _, st := range present {
		if st.fault.Kind == scenario.FaultDelay && op == scenario.OnNext {
			continue
		}
		if st.fault.When.Holds(op, number) {
			st.struck.Add(1)
			struck = append(struck, st)
		}
	}
	return struck
}
