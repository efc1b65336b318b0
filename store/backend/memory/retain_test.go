package memory_test

import (
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/clock/clocktest"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/memory"
	"github.com/watchmill/watchmill/store/window"
	"github.com/watchmill/watchmill/usercode"
)

func TestRetain_CompactsByAge(t *testing.T) {
	f := newFixture(t, memory.Options{})
	first := f.put("a", nil, backend.PutOptions{})
	last := f.flicker("a", 10)
	f.clock.Advance(memory.DefaultRetainAge - time.Second)
	require.Len(t, f.read(f.watch(first.Revision, nothing)), 10, "it is kept for that long")
	_, err := f.List(f.ctx, backend.ListOptions{Revision: first.Revision})
	require.NoError(t, err)
	f.clock.Advance(memory.DefaultRetainAge)

	// Nothing was written meanwhile: it goes by itself, and the timer rests.
	compacted, err := f.Compacted(f.ctx)
	require.NoError(t, err)
	require.Equal(t, last.Revision, compacted)
	_, err = f.Watch(f.ctx, backend.WatchOptions{From: first.Revision, Notify: nothing})
	require.ErrorIs(t, err, store.ErrExpired)
	_, err = f.List(f.ctx, backend.ListOptions{Revision: first.Revision})
	require.ErrorIs(t, err, store.ErrExpired)
	list, err := f.List(f.ctx, backend.ListOptions{Revision: last.Revision})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	f.clock.Advance(time.Hour)
	require.Zero(t, f.clock.Pending(), "with nothing to give up there is no timer")

	f.flicker("a", 1)
	require.Equal(t, 1, f.clock.Pending(), "and with something there is one again")
}

// History that is too young when the timer fires is discarded later, even if nothing more is written.
func TestRetain_CompactsWhatIsWrittenBeforeTheAlarm(t *testing.T) {
	f := newFixture(t, memory.Options{})
	f.flicker("a", 5)
	f.clock.Advance(memory.DefaultRetainAge - time.Second)
	f.flicker("a", 3)
	f.clock.Advance(time.Second)
	require.Equal(t, 8, f.History().Len(), "they are of one chunk")
	f.clock.Advance(memory.DefaultRetainAge)
	require.Zero(t, f.History().Len())
}

// What a watch has not read stays whatever its age is.
func TestRetain_NeedsFewTimersForAWatchThatDoesNotRead(t *testing.T) {
	c := &clocktest.Counting{Virtual: clock.NewVirtual(began)}
	b, err := memory.New(lamps, memory.Options{Clock: c, Retain: window.Limits{MinEvents: 10, MinAge: time.Millisecond}})
	require.NoError(t, err)
	defer b.Close()
	w, err := b.Watch(t.Context(), backend.WatchOptions{State: true, Notify: nothing})
	require.NoError(t, err)
	_, err = b.Put(t.Context(), newLamp("a", false), nil, backend.PutOptions{})
	require.NoError(t, err)
	c.Advance(time.Minute)
	require.Less(t, c.Timers, 100)
	batch, err := w.Next(10)
	require.NoError(t, err)
	require.Len(t, batch.Events, 1)
	c.Advance(time.Minute)
	require.Zero(t, c.Pending())
}

func TestRetain_CompactsByNumber(t *testing.T) {
	f := newFixture(t, memory.Options{Retain: window.Limits{MaxEvents: 100}})
	lagging := f.watch(1, nothing)
	last := f.flicker("a", 1000)
	_, err := lagging.Next(1)
	var expired *store.ExpiredError
	require.ErrorAs(t, err, &expired)
	require.Equal(t, store.Revision(1), expired.Requested)
	require.Greater(t, expired.Oldest, last.Revision-150)
	require.Len(t, f.read(f.watch(last.Revision-50, nothing)), 50)
	require.NotEmpty(t, f.read(f.watch(expired.Oldest, nothing)), "what the error says can be watched from")
}

func TestCompaction_FreesWhatItGivesUp(t *testing.T) {
	f := newFixture(t, memory.Options{})
	first := weak.Make(f.put("a", nil, backend.PutOptions{}))
	last := f.flicker("a", 2000)
	runtime.GC()
	require.NotNil(t, first.Value(), "history keeps it")
	require.NoError(t, f.Compact(f.ctx, last.Revision))
	runtime.GC()
	require.Nil(t, first.Value(), "nothing keeps it any more")
}

func TestCompaction_ListOfThePastSurvivesIt(t *testing.T) {
	f := newFixture(t, memory.Options{})
	first := f.put("a", nil, backend.PutOptions{})
	last := f.flicker("a", 1000)
	old, err := f.List(f.ctx, backend.ListOptions{Revision: first.Revision})
	require.NoError(t, err)
	require.NoError(t, f.Compact(f.ctx, last.Revision))
	require.Same(t, first, old.Items[0])
}

func TestRetain_InvalidLimitsNameTheField(t *testing.T) {
	_, err := memory.New(lamps, memory.Options{Retain: window.Limits{MinAge: -1}})
	var wrong *usercode.ConfigError
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, "Options.Retain.MinAge", wrong.Field)
}
