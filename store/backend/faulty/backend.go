package faulty

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/usercode"
)

// Options configures a [Backend]. The zero value is ready to use.
type Options struct {
	// Seed determines which calls a rule with a Chance affects.
	Seed uint64
	// Clock is the time that [Delay] waits by; nil means the machine's.
	Clock clock.Clock
	// Blocks and Sparse change [backend.ListerWatcher.Traits]: calls may block, so the
	// engine does not make them on its pool; revisions have gaps, so a missing
	// number does not reveal a lost event.
	Blocks, Sparse bool
	// ShareState passes on the underlying storage's state for sharing; see
	// [backend.List].State. A rule that changes the result of a list or a watch,
	// such as [LoseEvent], does not change the state.
	ShareState bool
}

// Backend wraps another backend with fault rules. It is also a [backend.Emitter];
// if the underlying one is not, Emit fails with [store.ErrUnsupported]. Its methods are safe for
// concurrent use. They block and fail as those of the underlying backend do, and as the rules say.
type Backend struct {
	opts    Options
	seed    uint64
	beneath atomic.Pointer[backend.Backend]
	// faults is replaced as a whole, so that calls take no lock.
	faults atomic.Pointer[[]*Fault]
	calls  [ops]atomic.Uint64

	mu      sync.Mutex // guards what follows, and is held while faults is replaced
	added   uint64
	watches []*watch // that run, in the order in which they were opened
}

var (
	_ backend.Backend   = (*Backend)(nil)
	_ backend.Emitter   = (*Backend)(nil)
	_ backend.Unwrapper = (*Backend)(nil)
)

// New returns a backend over b without rules.
func New(b backend.Backend, opts Options) *Backend {
	if opts.Clock == nil {
		opts.Clock = clock.Real()
	}
	f := &Backend{opts: opts, seed: opts.Seed}
	f.beneath.Store(&b)
	f.faults.Store(&[]*Fault{})
	return f
}

// Unwrap returns the underlying backend.
func (b *Backend) Unwrap() backend.Backend { return *b.beneath.Load() }

// Replace replaces the underlying backend and returns the old one, for the caller
// to close. Running watches stay on the old one until they end.
func (b *Backend) Replace(by backend.Backend) (old backend.Backend) {
	return *b.beneath.Swap(&by)
}

// Calls returns how many calls of an operation there have been.
func (b *Backend) Calls(op Op) uint64 {
	if op >= ops {
		return 0
	}
	return b.calls[op].Load()
}

// BreakWatches ends all running watches with err, or with [ErrInjected] if that is
// nil, and returns their number.
func (b *Backend) BreakWatches(err error) int {
	if err == nil {
		err = ErrInjected
	}
	return b.eachWatch(func(w *watch) { w.breakOff(err) })
}

// ExpireWatches ends all running watches with a [*store.ExpiredError], as if
// history had been compacted beyond their positions, and returns their number.
func (b *Backend) ExpireWatches() int {
	return b.eachWatch(func(w *watch) {
		at := w.position()
		w.breakOff(&store.ExpiredError{Requested: at, Oldest: at + 1})
	})
}

// RepeatLast makes all running watches that have delivered an event deliver the
// last one again.
func (b *Backend) RepeatLast() { b.eachWatch((*watch).repeat) }

// Watches returns the prefixes of the running watches, in the order in which they
// were opened.
func (b *Backend) Watches() []string {
	var prefixes []string
	for _, w := range b.running() {
		prefixes = append(prefixes, w.prefix)
	}
	return prefixes
}

// Wake notifies the readers of all running watches, as if there were new events.
func (b *Backend) Wake() { b.eachWatch((*watch).notify) }

// eachWatch calls f with each running watch, and returns their number. None is left out though
// the reader's Notify panics or ends the goroutine.
func (b *Backend) eachWatch(f func(*watch)) int {
	running := b.running()
	usercode.Each(running, f)
	return len(running)
}

func (b *Backend) running() []*watch {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.watches)
}

// do passes a call through the rules to the underlying backend.
func (b *Backend) do(ctx context.Context, c *Call, call func(beneath backend.Backend)) {
	c.backend, c.Number = b, b.calls[c.Op].Add(1)
	c.pass(ctx, *b.faults.Load(), func() { call(b.Unwrap()) })
}

// pass passes a call through the remaining faults, and then makes it.
func (c *Call) pass(ctx context.Context, left []*Fault, call func()) {
	for i, f := range left {
		if !f.strikes(c) || f.rule.Do == nil {
			continue
		}
		outer := c.fault
		c.fault = f
		f.rule.Do(ctx, c, func() { c.pass(ctx, left[i+1:], call) })
		c.fault = outer
		return
	}
	call()
}

// Traits are those of the underlying backend, as changed by the options. They are never
// [backend.Traits].Bounded, since a rule may hang a call.
func (b *Backend) Traits() backend.Traits {
	t := b.Unwrap().Traits()
	t.Blocks = t.Blocks || b.opts.Blocks
	t.Contiguous = t.Contiguous && !b.opts.Sparse
	t.Bounded = false
	return t
}

// Close closes the underlying backend.
func (b *Backend) Close() error { return b.Unwrap().Close() }
