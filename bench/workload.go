package bench

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Params is the size of a workload. A workload ignores the fields it does not use.
type Params struct {
	// Watchers is the number of watchers or subscribers.
	Watchers int `json:"watchers,omitempty"`
	// Objects is the number of objects.
	Objects int `json:"objects,omitempty"`
	// Events is the number of measured writes, or other operations.
	Events int `json:"events,omitempty"`
	// Rate is writes per second; zero is unlimited.
	Rate int `json:"rate,omitempty"`
	// Idle is the number of watchers that never read.
	Idle int `json:"idle,omitempty"`
	// Writers is the number of writers at the same time; zero is one.
	Writers int `json:"writers,omitempty"`
	// Readers is the number of readers that list continuously.
	Readers int `json:"readers,omitempty"`
}

// Workload is one benchmark.
type Workload struct {
	// ID is the number, with a variant if there are several: W4/100.
	ID string
	// Text describes the work.
	Text string
	// Full is the size to which the goals apply, and Small one that takes a moment.
	Full, Small Params
	// Goals are the bounds for watchmill's metrics.
	Goals []Goal
	// Run does the work with a system that the contender opens.
	Run func(ctx context.Context, c Contender, p Params) (Result, error)
	// Floor does only the unavoidable part of the work. At least one of its metrics is one
	// of Run, and the others are of other workloads with the same floor.
	Floor func(ctx context.Context, p Params) (Result, error)
	// Able reports whether the contender can do the work.
	Able func(c Contender) bool
	// Apart says that the workload needs a process of its own, since it measures memory, or
	// a rival leaves something behind.
	Apart bool
}

// Reference is what a goal's bound is relative to.
type Reference uint8

// The references.
const (
	// ToRival: the rival's figure.
	ToRival Reference = iota
	// ToFloor: the floor's time for the same work.
	ToFloor
	// ToOne: the bound is absolute.
	ToOne
)

// Goal bounds one of watchmill's metrics.
type Goal struct {
	Metric string
	// Least says that the metric must be at least Bound times the reference; otherwise it
	// must be at most that.
	Least bool
	Bound float64
	To    Reference
	// Rivals are the names of those that a bound relative to a rival is about; none means
	// every rival.
	Rivals []string
}

// About reports whether the goal is about the rival of that name.
func (g Goal) About(rival string) bool {
	return g.To != ToRival || len(g.Rivals) == 0 || slices.Contains(g.Rivals, rival)
}

// String prints the goal as in "≥ 40×" or "≤ 5× floor".
func (g Goal) String() string {
	sign := "≤"
	if g.Least {
		sign = "≥"
	}
	switch g.To {
	case ToFloor:
		return fmt.Sprintf("%s %.4g× floor", sign, g.Bound)
	case ToOne:
		return fmt.Sprintf("%s %.4g", sign, g.Bound)
	default:
		return fmt.Sprintf("%s %.3g×", sign, g.Bound)
	}
}

// Met reports whether v, the metric as a multiple of the reference, meets the goal.
func (g Goal) Met(v float64) bool {
	if g.Least {
		return v >= g.Bound
	}
	return v <= g.Bound
}

// atLeast and atMost are goals against a rival.
func atLeast(metric string, bound float64) Goal {
	return Goal{Metric: metric, Least: true, Bound: bound}
}
func atMost(metric string, bound float64) Goal { return Goal{Metric: metric, Bound: bound} }

// than makes a goal one against these rivals only.
func (g Goal) than(rivals ...string) Goal {
	g.Rivals = rivals
	return g
}

// nearFloor bounds the multiple of the floor's time, mustBeZero requires zero, and atMostAbsolute is
// an absolute bound.
func nearFloor(metric string, bound float64) Goal {
	return Goal{Metric: metric, Bound: bound, To: ToFloor}
}
func mustBeZero(metric string) Goal { return atMostAbsolute(metric, 0) }
func atMostAbsolute(metric string, bound float64) Goal {
	return Goal{Metric: metric, Bound: bound, To: ToOne}
}

// onStore and onBus say which contenders can do a workload.
func onStore(c Contender) bool  { return c.Store != nil }
func onFed(c Contender) bool    { return c.Fed != nil }
func onBus(c Contender) bool    { return c.Bus != nil }
func onServer(c Contender) bool { return c.Server != nil }
func onDisk(c Contender) bool   { return c.Durable != nil }

// All returns every workload, in order.
func All() []Workload {
	return slices.Concat(fanOut(), burst(), interest(), idle(), reads(), reconnect(), slow(), load(), informers(), buses(), serving(), growth(), million(), tree(), durable(), fileReads(), servedBurst(), customKind())
}

// Select returns the workloads that ids name: W4 names both W4/10 and W4/100.
// Without ids it returns all. An unknown id is an error.
func Select(ids []string) ([]Workload, error) { return SelectFrom(All(), ids) }

// SelectFrom is Select among the workloads in all.
func SelectFrom(all []Workload, ids []string) ([]Workload, error) {
	if len(ids) == 0 {
		return all, nil
	}
	for _, id := range ids {
		if !slices.ContainsFunc(all, func(w Workload) bool { return w.named(id) }) {
			return nil, fmt.Errorf("no workload %q; there are %s", id, strings.Join(idsOf(all), ", "))
		}
	}
	selected := slices.Clone(all)
	return slices.DeleteFunc(selected, func(w Workload) bool { return !slices.ContainsFunc(ids, w.named) }), nil
}

func (w Workload) named(id string) bool {
	return strings.EqualFold(w.ID, id) || strings.HasPrefix(strings.ToLower(w.ID), strings.ToLower(id)+"/")
}

func idsOf(all []Workload) []string {
	var ids []string
	for _, w := range all {
		ids = append(ids, w.ID)
	}
	return ids
}

// patience is the timeout of a run.
const patience = 5 * time.Minute

// runner is the Run of a [Workload].
type runner func(ctx context.Context, c Contender, p Params) (Result, error)

// opening chooses how a contender opens a system of type S.
type opening[S io.Closer] func(Contender) func(context.Context) (S, error)

func overStorage(c Contender) func(context.Context) (Store, error) { return c.Store }
func overStub(c Contender) func(context.Context) (Store, error)    { return c.Fed }

// on returns the run of work on a system.
func on[S io.Closer](open opening[S], work func(ctx context.Context, s S, p Params) (Result, error)) runner {
	return func(ctx context.Context, c Contender, p Params) (Result, error) {
		return run(ctx, c, open(c), func(ctx context.Context, s S) (Result, error) { return work(ctx, s, p) })
	}
}

// run runs f on the system of contender c that open opens, and closes the system.
func run[S io.Closer](ctx context.Context, c Contender, open func(context.Context) (S, error), f func(context.Context, S) (Result, error)) (Result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not done within %v", patience))
	defer cancel()
	result, err := onSystem(ctx, open, f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Name, err)
	}
	return result, nil
}

// onSystem runs f on a system that open opens, and closes the system.
func onSystem[S io.Closer](ctx context.Context, open func(context.Context) (S, error), f func(context.Context, S) (Result, error)) (Result, error) {
	system, err := open(ctx)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	result, err := f(ctx, system)
	if closing := system.Close(); err == nil {
		err = closing
	}
	return result, err
}
