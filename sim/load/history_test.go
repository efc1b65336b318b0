package load

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/sim/load/internal/breaks"
	"github.com/watchmill/watchmill/sim/load/internal/clients"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/load/internal/states"
	"github.com/watchmill/watchmill/sim/scenario"
	"github.com/watchmill/watchmill/sim/trace"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/faulty"
	"github.com/watchmill/watchmill/store/backend/memory"
)

func file(key, version string, rev engine.Revision) states.Item {
	return &engine.Object[content.Item]{Key: key, Value: content.Item{Key: key, Version: version, IsFile: true}, Revision: rev}
}

func TestFollow_WatchersKeepUpThroughFaultsAndReconnects(t *testing.T) {
	rep := inBubble(t, brief(t, &scenario.Scenario{
		Objects: scenario.Objects{Count: 20},
		Writers: []scenario.Writer{{Rate: 1000, Mix: scenario.Mix{Create: 1, Update: 2, Delete: 1}}},
		Watchers: []scenario.Watcher{
			{Name: "follow", Count: 5, Consumer: scenario.Follow, Reconnect: scenario.Reconnect{Every: 10 * time.Millisecond}},
			{Name: "queue", Count: 5, Consumer: scenario.Queue, Reconnect: scenario.Reconnect{Every: 10 * time.Millisecond}},
		},
		Faults: []scenario.Fault{
			{Kind: scenario.FaultBreak, Every: time.Second},
			{Kind: scenario.FaultReconnect, At: 7 * time.Second},
			{Kind: scenario.FaultCompact, At: 7 * time.Second},
		},
	}))
	require.Empty(t, rep.Broken)
	require.Zero(t, rep.Metrics["lost"])
	require.Zero(t, rep.Metrics["unread"])
	for _, g := range rep.Groups[1:] {
		require.Equal(t, "watchers", g.Kind)
		require.Positive(t, g.Events)
		require.Greater(t, g.Reconnects, 5, g.Name)
	}
}

// The window holds the last few of fifty writes, so the watcher cannot resume from
// before the first.
func TestFollow_ListsAgainWhatTheWindowHasLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &History{Watchers: 1, Window: 4, Fields: "ext=go"}
		for i := range 50 {
			h.Changes = append(h.Changes, trace.Change{Op: trace.Put, Key: fmt.Sprintf("%d.%s", i%5, []string{"go", "md"}[i%2]), Version: fmt.Sprint(i)})
		}
		selected, err := h.filter()
		require.NoError(t, err)
		r := newRun(h.plan(), Options{})
		r.history = &replay{History: h, selected: selected}
		require.NoError(t, r.start())
		defer func() { require.NoError(t, r.close()) }()
		require.NoError(t, r.beforeFirst(t.Context()))
		r.reading, r.written = context.WithCancelCause(t.Context())
		require.NoError(t, r.writeHistory(t.Context()))
		require.NoError(t, r.engine.WaitForRevision(t.Context(), r.history.last))
		r.expect()

		w := r.groups[0].all[0]
		w.ready, w.resumed = func() {}, true // the watcher has disconnected
		w.at.Store(uint64(r.history.base))
		w.trail.Begin(r.history.base)
		r.written(errWritten)
		require.ErrorIs(t, w.session(t.Context()), errRead)
		require.Equal(t, 1, w.relists)
		truth, err := r.backendState(t.Context())
		require.NoError(t, err)
		require.Empty(t, states.Difference(w.trail.Objects(), truth))
		require.Len(t, truth, 5)
	})
}

// A watcher of a history is lost when its watch ends without being stopped, but not when the
// engine was not ready for its first one: Follow tries again. One of a load resumes.
func TestFollow_WatchesThatEndByThemselves(t *testing.T) {
	notReady := &engine.NotReadyError{RetryAfter: time.Second}
	for name, c := range map[string]struct {
		cause                  error
		resumed, updated, lost bool
	}{
		"none":                 {},
		"not ready at first":   {cause: notReady},
		"not ready after away": {cause: notReady, resumed: true},
		"not ready after an end, which Follow no longer tells": {cause: notReady, updated: true, lost: true},
		"ended as not ready":    {cause: &engine.EndError{Reason: notReady}, lost: true},
		"expired while away":    {cause: engine.ErrExpired, resumed: true},
		"expired while reading": {cause: engine.ErrExpired, lost: true},
		"too slow":              {cause: engine.ErrSlowConsumer, resumed: true, lost: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := &watcher{
				run: &run{history: &replay{}}, group: &watchers{spec: &scenario.Watcher{Name: "w"}},
				resumed: c.resumed, updated: c.updated, ends: map[string]int{},
			}
			require.Equal(t, c.lost, w.recordEnd(c.cause) != nil)
			require.False(t, w.resumed)
			w.run.history, w.resumed, w.updated = nil, c.resumed, c.updated
			require.NoError(t, w.recordEnd(c.cause))
		})
	}
}

// A watch that Follow opened in place of one that ended counts as a reconnect; one that could
// not be opened at first has not ended.
func TestFollow_CountsTheWatchesThatItReopens(t *testing.T) {
	ended := &engine.EndError{Reason: engine.ErrSlowConsumer}
	r := &run{}
	w := &watcher{run: r, group: &watchers{spec: &scenario.Watcher{Name: "w"}}, ends: map[string]int{}}
	for _, cause := range []error{errors.New("storage is down"), nil, ended, errors.New("storage is down again"), nil} {
		require.NoError(t, w.recordEnd(cause))
	}
	require.Equal(t, 2, w.reconnects)
	require.Equal(t, map[string]int{"terminated": 1, "other": 1}, w.ends)
	require.Equal(t, []string{"w-0: storage is down"}, r.failed.all())

	early := &watcher{run: r, ends: map[string]int{}}
	require.NoError(t, early.recordEnd(ended), "it ended before it had delivered anything")
	require.Equal(t, 1, early.reconnects)
}

func TestReplay_SaysWhatIsWrongWithTheHistory(t *testing.T) {
	for field, spoil := range map[string]func(*History){
		"Changes":  func(h *History) { h.Changes = nil },
		"Watchers": func(h *History) { h.Watchers = 0 },
		"Slow":     func(h *History) { h.Slow = 3 },
		"Via":      func(h *History) { h.Via = Via(len(ViaNames)) },
		"Policy":   func(h *History) { h.Policy = 99 },
		"Speed":    func(h *History) { h.Speed = math.NaN() },
		"Breaks":   func(h *History) { h.Breaks = -1 },
		"Window":   func(h *History) { h.Window = -1 },
	} {
		h := History{Changes: []trace.Change{{Op: trace.Put, Key: "a", Version: "1"}}, Watchers: 2}
		spoil(&h)
		_, err := Replay(t.Context(), h)
		requireField(t, field, err)
	}
	for field, h := range map[string]History{
		"Slow":   {Watchers: 2, Slow: 1, Via: ViaInformer},
		"Policy": {Watchers: 2, Policy: engine.Conflate, Via: ViaObjectCache},
	} {
		requireField(t, field, h.Validate())
	}
	require.ErrorIs(t, (&History{Watchers: 2, Fields: "size=1"}).Validate(), store.ErrInvalidSelector)
}

// requireField requires that err names the field.
func requireField(t *testing.T, field string, err error) {
	t.Helper()
	var bad *engine.ConfigError
	require.ErrorAs(t, err, &bad, field)
	require.Equal(t, field, bad.Field)
}

// A Duration cannot say how much earlier than the first a change without a time is, and how much
// later the last one is when time is slow.
func TestHistory_ChangesAreDueWithinAHundredYears(t *testing.T) {
	began := time.Date(2024, time.April, 17, 12, 0, 0, 0, time.UTC)
	h := replay{History: &History{
		Changes: []trace.Change{{Time: began}, {Time: began.Add(time.Minute)}, {}, {Time: began.Add(-time.Nanosecond)}},
	}}
	for speed, want := range map[float64][]time.Duration{
		2:                           {0, 30 * time.Second, 0, 0},
		1e-300:                      {0, maxWait, 0, 0},
		math.SmallestNonzeroFloat64: {0, maxWait, 0, 0},
	} {
		h.Speed = speed
		for i := range h.Changes {
			require.Equal(t, want[i], h.due(&h.Changes[i]), "change %d at speed %v", i, speed)
		}
	}
}

// A replay that goes on takes the pauses that are left, and not those before.
func TestHistory_ChangesAreDueAfterTheLastInStorage(t *testing.T) {
	h := &replay{History: &History{Speed: 2}, start: 2}
	for _, seconds := range []int64{10, 20, 26} {
		h.Changes = append(h.Changes, trace.Change{Time: time.Unix(seconds, 0)})
	}
	require.Equal(t, 3*time.Second, h.due(&h.Changes[2]))
	h.start = 0
	require.Equal(t, 8*time.Second, h.due(&h.Changes[2]))
}

// After an event that stands for several the state is not that of its revision, so that a watch from
// there would not go on with it.
func TestWatcher_DoesNotDisconnectAfterAConflatedEvent(t *testing.T) {
	w := &watcher{run: &run{history: &replay{History: &History{Changes: make([]trace.Change, 2)}}}, breaks: breaks.New(1, 0, 1)} // due at revision 2
	events := make([]engine.Event[content.Item], 4)
	for i := range events {
		events[i].Revision = engine.Revision(i + 2)
	}
	events[0].Marks = engine.Conflated
	require.Equal(t, 2, w.untilBreak(events))
	require.Equal(t, 4, w.untilBreak(events), "it does so once")
}

func TestReplay_CountsAndNamesWatchersThatDiffer(t *testing.T) {
	truth := states.Of([]states.Item{file("a", "1", 2), file("b", "1", 3)})
	rep := &Replayed{Watchers: 1}
	rep.compareOutcome(&clients.Outcome{State: maps.Clone(truth)}, truth)
	require.True(t, rep.OK())
	rep = &Replayed{Watchers: 2}
	rep.compareOutcome(&clients.Outcome{Number: 0, State: truth}, truth)
	rep.compareOutcome(&clients.Outcome{Number: 1, State: states.Of([]states.Item{file("a", "1", 2)})}, truth)
	require.False(t, rep.OK())
	require.Equal(t, 1, rep.Equal)
	require.Equal(t, []string{`watcher 1 and the backend: "b" is not there and 1 at revision 3`}, rep.Differences)

	rep = &Replayed{Watchers: 2}
	rep.compareOutcome(&clients.Outcome{Number: 0, Lost: engine.ErrExpired}, truth)
	require.Empty(t, rep.Differences, "it is lost, which is counted elsewhere")
	rep.compareOutcome(&clients.Outcome{Number: 1, State: truth}, truth)
	require.Equal(t, trace.State{"a": "1", "b": "1"}, rep.State, "of the first that is not lost")
}

// An informer that no watcher waits for may be behind at the end, which would pass for a difference.
func TestReplay_HasNoInformerWithoutAWatcher(t *testing.T) {
	for watchers, informers := range map[int]int{1: 1, 2: 2, 5: 2} {
		h := &History{Watchers: watchers, Via: ViaInformer, Changes: []trace.Change{{Op: trace.Put, Key: "a", Version: "1"}}}
		selected, err := h.filter()
		require.NoError(t, err)
		r := newRun(h.plan(), Options{})
		r.history = &replay{History: h, selected: selected}
		require.NoError(t, r.start())
		require.NoError(t, r.open(t.Context()))
		require.Len(t, r.history.informers, informers)
		require.NoError(t, r.close())
	}
}

func TestReplayed_IsOKOnlyIfNothingIsWrong(t *testing.T) {
	require.True(t, (&Replayed{Watchers: 1, Equal: 1}).OK())
	for what, rep := range map[string]Replayed{
		"interrupted":  {Watchers: 1, Equal: 1, Interrupted: true},
		"lost":         {Watchers: 1, Equal: 1, Lost: []Loss{{Watchers: 1}}},
		"a misfit":     {Watchers: 1, Equal: 1, Misfits: 1},
		"a difference": {Watchers: 1, Equal: 1, Differences: []string{"the backend and the trace"}},
		"not compared": {Watchers: 1},
	} {
		require.False(t, rep.OK(), what)
	}
}

// What all have alike may be wrong, and what one has is compared with the rest.
func TestReplay_ComparesTheTraceTheStorageAndTheEngine(t *testing.T) {
	forges := faulty.Rule{Ops: []faulty.Op{faulty.OpPut}, Do: func(_ context.Context, c *faulty.Call, proceed func()) {
		content.Of(c.Draft).Version = "forged"
		proceed()
	}}
	leavesOut := faulty.Rule{Ops: []faulty.Op{faulty.OpList}, Do: faulty.After(func(_ context.Context, c *faulty.Call) {
		c.Page = &backend.List{Revision: c.Page.Revision}
	})}
	for name, test := range map[string]struct {
		via   Via
		wrong faulty.Rule
		want  []string
	}{
		"storage that forges": {ViaWatch, forges, []string{`the backend and the trace: "a" is forged at revision 2 and should be 1`}},
		"storage whose list leaves an object out": {ViaInformer, leavesOut, []string{
			`the backend and the trace: "a" is not there and should be 1`,
			`the engine (cached) and the backend: "a" is 1 at revision 2 and not there`,
			`the engine (latest) and the backend: "a" is 1 at revision 2 and not there`,
			`watcher 0 and the backend: "a" is 1 at revision 2 and not there`,
			`the lister of replay-0 and the backend: "a" is 1 at revision 2 and not there`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h := History{Watchers: 1, Via: test.via, Changes: []trace.Change{{Op: trace.Put, Key: "a", Version: "1"}}}
			h.Open = func(schema store.Schema) (backend.Backend, error) {
				beneath, err := memory.New(schema, memory.Options{FirstRevision: 1})
				b := faulty.New(beneath, faulty.Options{})
				b.Add(test.wrong)
				return b, err
			}
			rep, err := Replay(t.Context(), h)
			require.NoError(t, err)
			require.Equal(t, test.want, rep.Differences)
			require.False(t, rep.OK())
		})
	}
}

// An event that was lost or repeated may not show in the final state, but it does in the
// trail.
func TestReplay_CountsEventsThatDoNotFit(t *testing.T) {
	event := func(kind engine.EventType, key string, rev engine.Revision) engine.Event[content.Item] {
		return engine.Event[content.Item]{Type: kind, Revision: rev, Object: file(key, "v", rev)}
	}
	for name, c := range map[string]struct {
		events  []engine.Event[content.Item]
		misfits int
	}{
		"as it should be": {[]engine.Event[content.Item]{event(engine.Added, "a", 2), event(engine.Modified, "a", 3), event(engine.Deleted, "a", 4)}, 0},
		"twice":           {[]engine.Event[content.Item]{event(engine.Added, "a", 2), event(engine.Modified, "a", 3), event(engine.Modified, "a", 3), event(engine.Deleted, "a", 4)}, 1},
		"out of order":    {[]engine.Event[content.Item]{event(engine.Added, "a", 2), event(engine.Deleted, "a", 4), event(engine.Modified, "a", 3)}, 2},
		"another came":    {[]engine.Event[content.Item]{event(engine.Added, "a", 2), event(engine.Modified, "a", 3), event(engine.Deleted, "a", 5)}, 1},
		"one is lost":     {[]engine.Event[content.Item]{event(engine.Added, "a", 2), event(engine.Deleted, "a", 4)}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			h := &History{Watchers: 1}
			r := newRun(h.plan(), Options{})
			r.history = &replay{History: h}
			w := newWatcher(r, &watchers{spec: &r.plan.Watchers[0]}, 0, 0)
			w.group.all, r.groups = []*watcher{w}, []*watchers{w.group}
			for rev := range engine.Revision(3) {
				r.ledger.Note(judge.Entry{Revision: rev + 2, Key: "a", Deleted: rev == 2})
			}
			r.expect()
			w.trail.Begin(1)
			for i := range c.events {
				w.trail.Receive(&c.events[i])
			}
			require.Equal(t, c.misfits, r.outcomes()[0].Misfits)
		})
	}
}

// A client whose cache or informer ends does not pass for one that has read everything.
func TestReplay_AClientThatEndsIsLost(t *testing.T) {
	for _, via := range []Via{ViaInformer, ViaObjectCache} {
		t.Run(via.String(), func(t *testing.T) {
			h := &History{Watchers: 1, Via: via, Changes: []trace.Change{{Op: trace.Put, Key: "a", Version: "1"}}}
			selected, err := h.filter()
			require.NoError(t, err)
			r := newRun(h.plan(), Options{})
			r.history = &replay{History: h, selected: selected}
			require.NoError(t, r.start())
			defer func() { require.NoError(t, r.close()) }()
			require.NoError(t, r.open(t.Context()))
			require.NoError(t, r.closeClients())
			r.history.clients[0].Consume(t.Context(), t.Context())
			require.Error(t, r.history.clients[0].Result().Lost)
		})
	}
}

// A watcher that was lost before a replay was continued stays lost, for the same
// reason.
func TestReplay_ALostWatcherStaysLost(t *testing.T) {
	h := &History{Watchers: 1, Save: func(*Saved) error { return nil }}
	begun := newRun(h.plan(), Options{})
	begun.history = &replay{History: h}
	w := newWatcher(begun, &watchers{spec: &begun.plan.Watchers[0]}, 0, 0)
	w.delivered.Store(7)
	w.updatePosition(9)
	w.markLost(fmt.Errorf("%w: %0300d", engine.ErrSlowConsumer, 0))

	h.Resume = &Saved{Watchers: []WatcherPosition{w.position}}
	continued := newRun(h.plan(), Options{})
	continued.history = &replay{History: h}
	w = newWatcher(continued, &watchers{spec: &continued.plan.Watchers[0]}, 0, 0)
	w.group.all, continued.groups = []*watcher{w}, []*watchers{w.group}
	w.watchUntilRead(t.Context(), func() {})
	continued.expect()
	all := continued.outcomes()
	require.EqualValues(t, 7, all[0].Delivered.Load())
	lost := losses(all)
	require.Len(t, lost, 1)
	require.Equal(t, "slow consumer", lost[0].Reason)
	require.Len(t, lost[0].Err.Error(), maxLossText)
}

// A character of which half is saved would be another one after the replay was continued.
func TestLossText_EndsAfterAWholeCharacter(t *testing.T) {
	short := strings.Repeat("é", maxLossText/2)
	require.Equal(t, short, lossText(errors.New(short)))
	require.Equal(t, short, lossText(errors.New(short+"é")))
	require.Equal(t, "x"+short[2:], lossText(errors.New("x"+short)), "the last character does not fit")
}

// A watcher that has lost its last event has come as far as it ever will.
func TestReplay_EndsThoughTheLastEventIsLost(t *testing.T) {
	for _, via := range []Via{ViaWatch, ViaQueue, ViaInformer, ViaObjectCache} {
		t.Run(via.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := History{Watchers: 2, Via: via, Changes: []trace.Change{
					{Op: trace.Put, Key: "a", Version: "1"}, {Op: trace.Put, Key: "b", Version: "1"}, {Op: trace.Put, Key: "c", Version: "1"},
				}}
				h.Open = func(schema store.Schema) (backend.Backend, error) {
					beneath, err := memory.New(schema, memory.Options{})
					b := faulty.New(beneath, faulty.Options{Sparse: true})
					b.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpNext}, Do: faulty.After(func(_ context.Context, c *faulty.Call) {
						c.Batch.Events = slices.DeleteFunc(slices.Clone(c.Batch.Events), func(ev store.Event) bool { return ev.Key() == "c" })
					})})
					return b, err
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				rep, err := Replay(ctx, h)
				require.NoError(t, err)
				require.False(t, rep.Interrupted)
				require.False(t, rep.OK())
				require.Equal(t, via.Follows(), rep.Misfits == 2, "%+v", rep)
			})
		})
	}
}

// Where a replay is interrupted, its clients do not look at what the writer has not finished.
func TestReplay_IsInterruptedWhileItWrites(t *testing.T) {
	for _, via := range []Via{ViaInformer, ViaObjectCache} {
		h := History{Watchers: 8, Via: via}
		for i := range 300 {
			h.Changes = append(h.Changes, trace.Change{Op: trace.Put, Key: fmt.Sprint(i % 10), Version: fmt.Sprint(i)})
		}
		ctx, interrupt := context.WithCancel(t.Context())
		h.ProgressEvery = time.Microsecond
		h.OnProgress = func(p ReplayProgress) {
			if p.Written > 20 {
				interrupt()
			}
		}
		rep, err := Replay(ctx, h)
		interrupt()
		require.NoError(t, err)
		require.True(t, rep.Interrupted)
	}
}
