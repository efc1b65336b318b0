package actors_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/clock"
)

// start is the time at which the clocks of tests begin.
var start = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

var silent = slog.New(slog.DiscardHandler)

// newSystem starts a system that is closed, and checked for leaks, when the
// test ends. Without a clock of the test's own it has one that stands still: by the real one a
// turn may be reported as too long just because the machine has paused.
func newSystem(tb testing.TB, cfg actors.SystemConfig) *actors.System {
	tb.Helper()
	if cfg.Logger == nil {
		cfg.Logger = silent
	}
	if cfg.Clock == nil {
		cfg.Clock = clock.NewVirtual(start)
	}
	sys, err := actors.NewSystem(cfg)
	require.NoError(tb, err)
	tb.Cleanup(func() {
		require.NoError(tb, sys.Close(context.Background()))
		require.Zero(tb, sys.Actors())
		require.Zero(tb, sys.Timers())
	})
	return sys
}

// newSeeded starts a system on a seeded executor.
func newSeeded(tb testing.TB, cfg actors.SystemConfig) (*actors.System, *actors.Seeded) {
	tb.Helper()
	seeded := actors.NewSeeded(1)
	cfg.Executor = seeded
	return newSystem(tb, cfg), seeded
}

// journal is a list of events in the order in which they happened.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) note(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

// take returns the events since the last take, separated by "; ".
func (j *journal) take() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := strings.Join(j.lines, "; ")
	j.lines = nil
	return s
}

// probe is a behavior that notes every call in its journal. Its messages contain
// functions for it to call.
type probe struct {
	*journal
	name string
	// fail names the calls that panic.
	fail map[string]bool
	// directive is its decision about children that fail.
	directive actors.Directive
	// hooks are called in the calls that they are named after.
	hooks map[string]func(*actors.Context)
}

// do is a message to a probe: a name to note and a function to call, or nil.
type do struct {
	name string
	act  func(*actors.Context)
}

func say(name string) do { return do{name: name} }

func run(name string, act func(*actors.Context)) do { return do{name, act} }

func boom(name string) do { return do{name, func(*actors.Context) { panic("boom " + name) }} }

func (p *probe) call(ctx *actors.Context, name string) {
	p.note("%s %s", p.name, name)
	if hook := p.hooks[name]; hook != nil {
		hook(ctx)
	}
	if p.fail[name] {
		panic("in " + name)
	}
}

func (p *probe) Receive(ctx *actors.Context, m do) {
	p.note("%s got %s", p.name, m.name)
	if m.act != nil {
		m.act(ctx)
	}
}

func (p *probe) Started(ctx *actors.Context)                   { p.call(ctx, "started") }
func (p *probe) Stopping(ctx *actors.Context)                  { p.call(ctx, "stopping") }
func (p *probe) Stopped(ctx *actors.Context)                   { p.call(ctx, "stopped") }
func (p *probe) Restarting(ctx *actors.Context)                { p.call(ctx, "restarting") }
func (p *probe) ChildStopped(ctx *actors.Context, _ actors.ID) { p.call(ctx, "lost a child") }
func (p *probe) Dropped(m do)                                  { p.call(nil, "dropped "+m.name) }
func (p *probe) ChildFailed(ctx *actors.Context, _ actors.ID, reason any) actors.Directive {
	p.call(ctx, fmt.Sprintf("asked about %q", fmt.Sprint(reason)))
	return p.directive
}

var (
	_ actors.Starter       = (*probe)(nil)
	_ actors.Stopper       = (*probe)(nil)
	_ actors.Ender         = (*probe)(nil)
	_ actors.Restarter     = (*probe)(nil)
	_ actors.ChildObserver = (*probe)(nil)
	_ actors.Dropper[do]   = (*probe)(nil)
	_ actors.Supervisor    = (*probe)(nil)
)

// spawnProbe spawns p itself: a restart keeps the same value.
func spawnProbe(parent actors.Parent, p *probe, opts actors.Options) *actors.Ref[do] {
	return actors.Spawn(parent, p.name, func() actors.Behavior[do] { return p }, opts)
}

// failures collects the failures passed to OnFailure.
type failures struct {
	mu  sync.Mutex
	all []actors.Failure
}

func (f *failures) add(one actors.Failure) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, one)
}

// take returns "actor: reason: directive" of each failure since the last take.
func (f *failures) take() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var lines []string
	for _, one := range f.all {
		lines = append(lines, fmt.Sprintf("%s: %v: %v", one.Actor, one.Reason, one.Directive))
	}
	f.all = nil
	return strings.Join(lines, "; ")
}
