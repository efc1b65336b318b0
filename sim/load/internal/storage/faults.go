package storage

import (
	"errors"

	"github.com/watchmill/watchmill/sim/scenario"
	"github.com/watchmill/watchmill/store/backend/faulty"
)

// ErrInjected is what calls fail with that a fault strikes.
var ErrInjected = errors.New("failed by the scenario")

// operations are those that conditions name, as the storage has them.
var operations = map[faulty.Op]scenario.Operation{
	faulty.OpGet: scenario.OnGet, faulty.OpList: scenario.OnList, faulty.OpPut: scenario.OnPut,
	faulty.OpRemove: scenario.OnRemove, faulty.OpEmit: scenario.OnEmit,
	faulty.OpWatch: scenario.OnWatch, faulty.OpNext: scenario.OnNext,
}

// Begin makes a fault hold that lasts, until [Storage.End].
func (s *Storage) Begin(f *scenario.Fault) *faulty.Fault {
	s.mu.Lock()
	if s.holding++; s.holding == 1 {
		for op := range operations {
			s.spared[op] += s.Calls(op) - s.ended[op]
		}
	}
	s.mu.Unlock()
	rule := faulty.Rule{When: func(c *faulty.Call) bool { return s.falls(f, c) }}
	switch f.Kind {
	case scenario.FaultFail:
		rule.Do = faulty.Fail(ErrInjected)
	case scenario.FaultDelay:
		rule.Do = faulty.Delay(f.Delay)
	case scenario.FaultStick:
		rule.Do = faulty.Hang()
	}
	return s.Add(rule)
}

// End ends what Begin began.
func (s *Storage) End(f *faulty.Fault) {
	f.Remove()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holding--; s.holding == 0 {
		for op := range operations {
			s.ended[op] = s.Calls(op)
		}
	}
}

// falls reports whether a fault strikes a call: by its number among those of its
// operation that are made while some fault holds.
func (s *Storage) falls(f *scenario.Fault, c *faulty.Call) bool {
	op, named := operations[c.Op]
	if !named {
		return false
	}
	s.mu.Lock()
	number := c.Number - min(c.Number, s.spared[c.Op]+1)
	s.mu.Unlock()
	return f.When.Holds(op, number)
}
