package backendtest_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/backendtest"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// began is when the clocks of the tests start.
var began = time.Date(2024, time.April, 17, 12, 0, 0, 0, time.UTC)

// recorder is a [backendtest.T] that records failures, so that they do not fail the
// test that runs it.
type recorder struct {
	ctx    context.Context
	mu     sync.Mutex
	failed bool
	log    string
}

func (r *recorder) Helper()                  {}
func (r *recorder) Context() context.Context { return r.ctx }

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
	r.log += fmt.Sprintf(format, args...)
}

func (r *recorder) FailNow() {
	r.mu.Lock()
	r.failed = true
	r.mu.Unlock()
	runtime.Goexit()
}

// runCheck runs a check on a broken backend, in a synctest bubble, where waiting takes
// no time.
func runCheck(t *testing.T, check backendtest.Check, b breakage) *recorder {
	verdict := &recorder{ctx: context.Background()}
	synctest.Test(t, func(t *testing.T) {
		virtual := clock.NewVirtual(began)
		h, err := memory.New(backendtest.Schema(), memory.Options{Clock: virtual, FirstRevision: 1})
		require.NoError(t, err)
		defer func() { require.NoError(t, h.Close()) }()
		done := make(chan struct{})
		go func() {
			defer close(done)
			check.Run(verdict, b.harness(h, virtual))
		}()
		<-done
		synctest.Wait()
	})
	return verdict
}

// pause lets time pass in the bubble in which a check runs.
func pause(d time.Duration) { time.Sleep(d) }

// harness makes durable storage of h: a restart returns another wrapper of it, and so
// does another process.
func (b breakage) harness(h correct, virtual *clock.Virtual) backendtest.Harness {
	first, pass := b.wrap(b.wreck, h), virtual.Advance
	return backendtest.Harness{
		Backend: first, Pass: func(d time.Duration) { pass(d) }, Patience: time.Minute, Transact: first.transact,
		Reopen: func(down time.Duration) backend.Backend {
			if !b.stops {
				virtual.Advance(down)
			}
			if b.sleeps {
				pass = func(time.Duration) {}
			}
			return b.wrap(b.reopen, h)
		},
		Another: func() backend.Backend { return guest{b.wrap(b.another, h)} },
	}
}

func (b breakage) wrap(by func(correct) *wrapper, h correct) *wrapper {
	if by == nil {
		by = intact
	}
	return by(h)
}

// guest is the backend of another process: closing it does not close the storage.
type guest struct{ *wrapper }

func (guest) Close() error { return nil }

func intact(h correct) *wrapper { return &wrapper{correct: h} }

func TestRun_CorrectBackendsPass(t *testing.T) {
	for _, kind := range []damage{
		{name: "contiguous", wreck: intact}, {name: "transactional", wreck: grouped},
		{name: "does not count what remains", wreck: uncounted},
		{name: "tells its storage", wreck: identified(func(id string, _ backend.ListOptions) string { return id }, itself)},
	} {
		t.Run(kind.name, func(t *testing.T) {
			for _, check := range backendtest.Checks() {
				verdict := runCheck(t, check, breakage{damage: kind, reopen: kind.wreck, another: kind.wreck})
				require.False(t, verdict.failed, "%s: %s", check.Name, verdict.log)
			}
		})
	}
}

// uncounted returns a correct backend whose pages do not say how many objects follow them.
func uncounted(h correct) *wrapper {
	return eachList(func(ctx context.Context, h correct, opts backend.ListOptions) (*backend.List, error) {
		l, err := h.List(ctx, opts)
		if err == nil && l.Remaining > 0 {
			l.Remaining = -1
		}
		return l, err
	})(h)
}

// skipper is a recorder that is told, too, that a check does not apply.
type skipper struct {
	*recorder
	why []any
}

func (s *skipper) Skip(args ...any) {
	s.why = args
	runtime.Goexit()
}

// inapplicable returns the names of the checks that say that they do not apply to storage in memory that was
// wrapped, and fails t if a check fails.
func inapplicable(t *testing.T, wrap func(correct) backend.Backend) (names []string) {
	t.Helper()
	for _, check := range backendtest.Checks() {
		synctest.Test(t, func(t *testing.T) {
			virtual := clock.NewVirtual(began)
			h, err := memory.New(backendtest.Schema(), memory.Options{Clock: virtual})
			require.NoError(t, err)
			defer func() { require.NoError(t, h.Close()) }()
			s := &skipper{recorder: &recorder{ctx: context.Background()}}
			done := make(chan struct{})
			go func() {
				defer close(done)
				check.Run(s, backendtest.Harness{Backend: wrap(h), Pass: virtual.Advance})
			}()
			<-done
			require.False(t, s.failed, "%s: %s", check.Name, s.log)
			if len(s.why) > 0 {
				require.Contains(t, s.why[0], "does not apply: ")
				names = append(names, check.Name)
			}
		})
	}
	return names
}

// Storage in memory, without transactions and without other processes: the checks of
// those do not count as passed. All others apply.
func TestChecks_SayThatTheyDoNotApply(t *testing.T) {
	require.Equal(t, []string{
		"Restart_KeepsStateAndRevision", "Restart_ResumesFromEveryRevision", "Restart_ListsEveryRevision",
		"Restart_KeepsWhatWasCompacted", "Restart_DeletesWhatExpiresMeanwhile", "Restart_DeletesWhatExpiresAfterIt",
		"Contract_OneRevisionIsNeverSplit", "Contract_ForeignWritesAreWrites", "Contract_SharedStorageIsOne",
		"Contract_ListsAndWatchesAreOfTheStorage", "Contract_ProgressComesOnRequest",
	}, inapplicable(t, func(h correct) backend.Backend { return h }))
}

// permanent is storage without TTLs.
type permanent struct{ correct }

func (p permanent) Put(ctx context.Context, draft, prev *object, opts backend.PutOptions) (*object, error) {
	if opts.TTL > 0 {
		return nil, store.ErrUnsupported
	}
	return p.correct.Put(ctx, draft, prev, opts)
}

// Storage that refuses TTLs keeps the rest of the contract.
func TestChecks_OfTTLsDoNotApplyToStorageWithoutThem(t *testing.T) {
	names := inapplicable(t, func(h correct) backend.Backend { return permanent{h} })
	require.Subset(t, names, []string{"Create_WithTTLIsDeletedInTime", "Put_SetsTheTimeToLiveAnew", "Put_KeepsTheExpiryIfAsked"})
	require.Len(t, names, 14)
}

func TestRun_BrokenBackendsAreFound(t *testing.T) {
	checks := map[string]backendtest.Check{}
	for _, check := range backendtest.Checks() {
		checks[check.Name] = check
	}
	for _, b := range breakages {
		t.Run(b.name, func(t *testing.T) {
			check, ok := checks[b.found]
			require.True(t, ok, "there is no check %q", b.found)
			require.True(t, runCheck(t, check, b).failed, "%s did not find it", b.found)
		})
	}
}

// A check that finds nothing in any of the broken backends may be unable to fail.
func TestChecks_CanFail(t *testing.T) {
	found := map[string]bool{}
	for _, b := range breakages {
		found[b.found] = true
	}
	for _, check := range backendtest.Checks() {
		require.True(t, found[check.Name], "no breakage is found by %s", check.Name)
	}
}
