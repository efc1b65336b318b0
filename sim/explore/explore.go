package explore

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/sim/explore/world"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/usercode"
)

// Progress is how far an exploration has come.
type Progress struct {
	// Done is how many seeds have been explored, and Seeds how many are to be explored;
	// Seeds is zero if only time ends the exploration.
	Done, Seeds int
	Counts      world.Counts
}

// Report is what an exploration found.
type Report struct {
	// From is the first seed, and Seeds how many were explored. The seed of a finding
	// is the last: higher seeds that other workers had begun are not counted, neither
	// here nor in the fields below.
	From  uint64 `json:"from"`
	Seeds int    `json:"seeds"`
	world.Counts
	// Hash is the hash of everything that happened, over all seeds: every exploration
	// of the same seeds by the same program has the same one.
	Hash string `json:"hash"`
	// Elapsed is the real time that the exploration took, without the shrinking.
	Elapsed time.Duration `json:"elapsedNanoseconds"`
	// Interrupted says that the context ended the exploration early. A finding's
	// scenario may then be longer than necessary.
	Interrupted bool `json:"interrupted,omitempty"`
	// Finding describes the lowest seed that breaks an invariant; nil if none does.
	Finding *Finding `json:"finding,omitempty"`
}

// PerSecond returns the number of simulated messages per second of real time; see
// [world.Counts.Messages].
func (r *Report) PerSecond() float64 {
	if r.Elapsed <= 0 {
		return 0
	}
	return float64(r.Messages()) / r.Elapsed.Seconds()
}

// Run explores the seeds that cfg names: each draws a scenario and an
// interleaving, which Run plays and judges. It stops at the first seed that
// breaks an invariant, and shrinks its scenario. It blocks until all of its
// goroutines have returned.
//
// Errors: a [*ConfigError], what Attach returned, or [usercode.ErrGoexit] if a function in
// cfg ended its goroutine, as t.FailNow does. A broken invariant is not an error: it is the
// report's Finding. When ctx is done, Run returns the report so far, without an error.
func Run[T any](ctx context.Context, cfg Config[T]) (*Report, error) {
	worlds, err := cfg.world().WithDefaults()
	if err == nil {
		err = cfg.validate()
	}
	if err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	x := &exploration[T]{cfg: cfg, worlds: worlds, began: time.Now(), report: &Report{From: cfg.From}, pending: map[uint64]world.Outcome{}}
	var workers sync.WaitGroup
	for range cfg.Workers {
		workers.Go(func() { x.work(ctx) })
	}
	workers.Wait()
	if x.abandoned && x.found == nil && x.err == nil {
		x.err = fmt.Errorf("a seed was not explored to its end: %w", usercode.ErrGoexit)
	}
	x.report.Hash = fmt.Sprintf("%016x", x.hash)
	x.report.Elapsed = time.Since(x.began)
	if x.found != nil {
		x.report.Finding = x.explain(ctx)
		x.report.Interrupted = ctx.Err() != nil
	}
	return x.report, x.err
}

// exploration is the state that the workers of a Run share.
type exploration[T any] struct {
	cfg    Config[T]
	worlds world.Config[T]
	began  time.Time

	mu   sync.Mutex // guards the fields below
	next int
	// over: no more seeds are taken, since the outcome of one ends the exploration.
	over bool
	// abandoned: a worker's goroutine was ended by user code, in the middle of a seed.
	abandoned bool
	// pending are the outcomes of seeds that finished before a lower one. They are counted
	// once that one is done, so that the result does not depend on timing.
	pending map[uint64]world.Outcome
	report  *Report
	hash    uint64
	// found is the failure of the lowest seed that fails, and foundAt is that seed. err
	// is why a seed could not be played.
	found   *judge.Failure
	foundAt uint64
	err     error
}

// work explores seeds until none is left.
func (x *exploration[T]) work(ctx context.Context) {
	left := false
	defer func() {
		if !left {
			x.abandon()
		}
	}()
	for {
		seed, ok := x.take(ctx)
		if !ok {
			left = true
			return
		}
		x.done(seed, world.Play(&x.worlds, x.draw(seed), nil))
	}
}

// abandon ends the exploration, whose outcome would lack a seed.
func (x *exploration[T]) abandon() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.over, x.abandoned = true, true
}

func (x *exploration[T]) draw(seed uint64) script.Scenario {
	return script.Draw(seed, len(x.worlds.Selections), x.cfg.Steps)
}

// take returns the next seed, if there is one. Seeds are taken in order, so when all
// workers have returned, every seed below one that fails has been explored.
func (x *exploration[T]) take(ctx context.Context) (uint64, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.over:
		return 0, false
	case x.cfg.Seeds > 0 && x.next == x.cfg.Seeds:
		return 0, false
	case x.cfg.For > 0 && x.next > 0 && time.Since(x.began) >= x.cfg.For:
		return 0, false
	case ctx.Err() != nil:
		x.report.Interrupted = true
		return 0, false
	}
	x.next++
	return x.cfg.From + uint64(x.next-1), true
}

// done records the outcome of a seed.
func (x *exploration[T]) done(seed uint64, o world.Outcome) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.pending[seed] = o
	x.over = x.over || o.Ends()
	for x.count() {
	}
}

// count adds the outcome of the next seed to the report, unless it is not known yet or
// a lower seed has ended the exploration. It reports whether it did.
func (x *exploration[T]) count() bool {
	r := x.report
	seed := x.cfg.From + uint64(r.Seeds)
	o, there := x.pending[seed]
	if !there || x.found != nil || x.err != nil {
		return false
	}
	delete(x.pending, seed)
	r.Seeds++
	r.Counts.Add(o.Counts)
	x.hash += o.Hash
	x.err = o.Err
	if o.Failure != nil {
		x.found, x.foundAt = o.Failure, seed
	}
	if x.cfg.OnProgress != nil {
		x.cfg.OnProgress(Progress{Done: r.Seeds, Seeds: x.cfg.Seeds, Counts: r.Counts})
	}
	return true
}

// explain returns the finding for the seed that failed, with its scenario shrunk as far
// as possible until ctx is done.
func (x *exploration[T]) explain(ctx context.Context) *Finding {
	drawn := x.draw(x.foundAt)
	short := script.Shrink(ctx, drawn, func(s script.Scenario) bool {
		o := world.Play(&x.worlds, s, nil)
		return o.Failure != nil && o.Failure.Invariant == x.found.Invariant
	})
	f, _ := playTraced(&x.worlds, short)
	f.Invariant, f.Problem, f.Drawn = x.found.Invariant, x.found.Error(), len(drawn.Steps)
	return f
}

// Play plays one scenario, such as a [Finding]'s or one of [script.Draw], without shrinking it,
// and returns the invariant that it breaks; nil means that every invariant held. The fields
// of cfg that say how much to explore must be valid, and have no effect. It blocks until the
// scenario has ended.
//
// Errors: a [*ConfigError] for an invalid field of cfg or of the scenario, or what Attach
// returned. A step that the engine refuses without a reason is a finding, not an error.
func Play[T any](cfg Config[T], s script.Scenario) (*Finding, error) {
	worlds, err := cfg.world().WithDefaults()
	if err == nil {
		err = cfg.validate()
	}
	if err == nil {
		err = s.Validate()
	}
	if err != nil {
		return nil, err
	}
	f, o := playTraced(&worlds, s)
	if o.Failure == nil {
		return nil, o.Err
	}
	return f, nil
}
