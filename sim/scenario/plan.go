package scenario

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Plan is a resolved scenario: nothing is left to defaults or to chance. Its
// fields are read, not changed. Make one with [Scenario.Resolve].
type Plan struct {
	Scenario
	// IsSmall: it was resolved with [Options].Small.
	IsSmall bool
	// Hash identifies the plan, seed included: equal plans have equal hashes, on
	// every machine. It is the SHA-256 of its content in hexadecimal, that of the
	// traces it replays included.
	Hash string
	// Timeline is when each fault begins and ends, in order.
	Timeline []Moment
	// Checks are the assertions, understood.
	Checks []Check
}

// Moment is one occurrence of a fault.
type Moment struct {
	// At is when it begins, Until when it is over; equal for a fault of a moment.
	At, Until time.Duration
	// Fault is its index in the plan's Faults.
	Fault int
}

// newPlan derives the rest from a scenario that has been filled in. Errors:
// [Errors], of a trace that cannot be read.
func newPlan(s Scenario, small bool) (_ *Plan, err error) {
	p := &Plan{Scenario: s, IsSmall: small}
	for i := range s.Faults {
		p.Timeline = append(p.Timeline, occurrences(&s.Faults[i], i, s.Duration)...)
	}
	slices.SortStableFunc(p.Timeline, func(a, b Moment) int { return cmp.Compare(a.At, b.At) })
	for _, a := range s.Assert {
		check, _ := a.Check() // has been validated
		p.Checks = append(p.Checks, check)
	}
	if p.Hash, err = p.digest(); err != nil {
		return nil, err
	}
	return p, nil
}

// occurrences returns when the fault happens before the end.
func occurrences(f *Fault, index int, end time.Duration) (moments []Moment) {
	for at := f.At; at < end; at += f.Every {
		moments = append(moments, Moment{At: at, Until: min(at+f.For, end), Fault: index})
		if f.Every <= 0 {
			break
		}
	}
	return moments
}

// digest hashes the content. The order of JSON's keys does not depend on maps'.
func (p *Plan) digest() (string, error) {
	content, err := json.Marshal(p.Scenario)
	if err != nil { // a float that is no number would be refused by Validate
		return "", err
	}
	sum := sha256.New()
	_, _ = sum.Write(content) // cannot fail
	for i, w := range p.Writers {
		if w.Trace == "" {
			continue
		}
		if err := p.copyTrace(sum, w.Trace); err != nil {
			return "", Errors{{Field: fmt.Sprintf("writers[%d].trace", i), Problem: err.Error(), Fix: traceFix}}
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// WatcherCount returns how many watchers there are.
func (p *Plan) WatcherCount() (n int) {
	for _, w := range p.Watchers {
		n += w.Count
	}
	return n
}
