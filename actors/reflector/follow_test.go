package reflector_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

var errReset = errors.New("connection reset")

// seconds is longer than the first few delays, so an attempt falls in it.
const seconds = 10 * time.Second

func TestList_RevisionIsPassedOn(t *testing.T) {
	r := newFixture(t)
	r.source.put("a", "1")
	r.source.progress(7)
	r.start(r.config())
	require.Equal(t, []string{"Replace Started@8"}, r.mirror.told())
	require.Equal(t, store.Revision(8), r.ref.Stats().Revision)
	require.Contains(t, r.source.asked(), `watch "" from=8`)
}

// counted is a sink that has the numbers of its Reflector for each update.
type counted struct {
	*mirror
	stats []reflector.Stats
	of    func() reflector.Stats
}

func (c *counted) Offer(u update) actors.Verdict {
	c.stats = append(c.stats, c.of())
	return c.mirror.Offer(u)
}

// What can be read of a sink is in the numbers, which may be asked for within the turn.
func TestStats_HaveAnUpdateOnceTheSinkHasIt(t *testing.T) {
	r := newFixture(t)
	r.source.put("a", "1")
	cfg := r.config()
	c := &counted{mirror: r.mirror, of: func() reflector.Stats { return r.ref.Stats() }}
	cfg.Sink = c
	r.start(cfg)
	r.source.put("b", "1")
	r.settle()
	require.Equal(t, []string{"Replace Started@1", "Changes@2"}, r.mirror.told())
	require.Len(t, c.stats, 2)
	for i, stats := range c.stats {
		require.EqualValues(t, i+1, stats.Revision)
		require.EqualValues(t, 1, stats.Lists)
		require.EqualValues(t, i, stats.Events)
	}
}

func TestList_InPagesThenWatches(t *testing.T) {
	r := newFixture(t)
	for i := range 5 {
		r.source.put(fmt.Sprintf("ns/%d", i), "v")
	}
	r.source.put("other/x", "v")
	cfg := r.config()
	cfg.PageSize, cfg.Prefix = 2, "ns"
	r.start(cfg)
	require.Equal(t, []string{
		`list "ns" limit=2 continue=""`,
		`list "ns" limit=2 continue="6:2"`,
		`list "ns" limit=2 continue="6:4"`,
		`watch "ns" from=6`,
	}, r.source.asked())
	require.Len(t, r.mirror.state, 5)
	require.Equal(t, uint64(3), r.ref.Stats().Pages)
}

func TestList_DefaultPageSize(t *testing.T) {
	r := newFixture(t)
	r.source.put("a", "1")
	r.start(r.config())
	require.Equal(t, []string{`list "" limit=10000 continue=""`, `watch "" from=1`}, r.source.asked())
}

func TestList_ExplicitPageSize(t *testing.T) {
	r := newFixture(t)
	for i := range 10 {
		r.source.put(fmt.Sprint(i), "v")
	}
	cfg := r.config()
	cfg.PageSize = 4
	r.start(cfg)
	require.Equal(t, 3, r.count("list"))
	r.synced()
}

func TestRelist_InFullIfAPageExpires(t *testing.T) {
	r := newFixture(t)
	for i := range 5 {
		r.source.put(fmt.Sprint(i), "v")
	}
	r.source.fail("list", nil, &store.ExpiredError{Requested: 5, Oldest: 9})
	cfg := r.config()
	cfg.PageSize = 2
	r.start(cfg)
	require.Equal(t, []string{
		`list "" limit=2 continue=""`,
		`list "" limit=2 continue="5:2"`,
		`list "" limit=0 continue=""`,
		`watch "" from=5`,
	}, r.source.asked())
	r.synced()
}

func TestWatch_FollowsAddsUpdatesAndDeletes(t *testing.T) {
	r := newFixture(t)
	r.source.put("a", "1")
	r.start(r.config())
	r.source.put("b", "1")
	r.synced()
	r.source.put("a", "2")
	r.source.remove("b")
	r.synced()
	require.Equal(t, []string{"Replace Started@1", "Changes@2", "Changes@4"}, r.mirror.told())
}

func TestWatch_ProgressIsPassedOn(t *testing.T) {
	r := newFixture(t)
	r.start(r.config())
	r.source.progress(5)
	r.settle()
	require.Equal(t, []string{"Replace Started@0", "Progress@5"}, r.mirror.told())
}

func TestList_OfAnIdleResourceReachesStoragesRevision(t *testing.T) {
	r := newFixture(t)
	r.source.put("mine/a", "1")
	cfg := r.config()
	cfg.Prefix = "mine"
	r.source.traits.Contiguous = true // as a whole, but not under a prefix
	r.start(cfg)
	r.source.put("theirs/b", "1")
	r.settle()
	require.Equal(t, store.Revision(2), r.mirror.rev)
	require.Empty(t, r.errs)
}

func TestWatch_BatchesAreBoundedAndComplete(t *testing.T) {
	r := newFixture(t)
	cfg := r.config()
	cfg.MaxBatch = 3
	r.start(cfg)
	for i := range 8 {
		r.source.put(fmt.Sprint(i), "v")
	}
	r.synced()
	require.Equal(t, []string{"Replace Started@0", "Changes@3", "Changes@6", "Changes@8"}, r.mirror.told())
}

func TestWatch_ManyNotificationsAreOneMessage(t *testing.T) {
	r := newFixture(t)
	r.start(r.config())
	for range 1000 {
		r.source.put("a", "v")
	}
	r.synced()
	require.Equal(t, []string{"Replace Started@0", "Changes@1000"}, r.mirror.told())
}

// A writer commits while a batch is being read: the notification falls between
// two reads and must not get lost.
func TestWatch_OverlooksNothingBetweenTwoReads(t *testing.T) {
	r := newFixture(t)
	r.start(r.config())
	for i := range 200 {
		r.source.put("a", fmt.Sprint(i))
		r.exec.RunN(1 + i%3)
	}
	r.synced()
}

func TestWatch_BrokenOneIsClosedAndResumed(t *testing.T) {
	r := newFixture(t)
	r.source.put("a", "1")
	r.start(r.config())
	r.source.disturb(errReset)
	r.settle()
	require.Zero(t, r.source.open())
	r.source.put("b", "missed while away")
	r.pass(seconds)
	r.synced()
	require.Equal(t, 1, r.count("list"), "no relist")
	require.Equal(t, []string{"Replace Started@1", "Unavailable: connection reset", "Progress@1", "Changes@2"}, r.mirror.told())
	require.Equal(t, []error{errReset}, r.errs)
}

func TestRelist_OnAnExpiredRevision(t *testing.T) {
	r := newFixture(t)
	r.source.put("a", "1")
	r.start(r.config())
	r.source.disturb(errReset)
	r.source.put("a", "2")
	r.source.compact()
	r.pass(seconds)
	r.synced()
	require.ErrorIs(t, r.ref.Stats().LastError, store.ErrExpired)
	require.Equal(t, uint64(1), r.ref.Stats().Relists[reflector.Expired])
}

func TestRelist_OnAFutureRevision(t *testing.T) {
	r := newFixture(t)
	r.source.put("a", "1")
	r.source.progress(9)
	r.start(r.config())
	r.source.rev = 4 // restored from a backup
	r.source.disturb(errReset)
	r.pass(seconds)
	r.synced()
	require.Equal(t, []string{"Replace Started@10", "Unavailable: connection reset", "Replace Future@4"}, r.mirror.told())
}

func TestRelist_AfterAnUnreadableEvent(t *testing.T) {
	r := newFixture(t)
	r.source.put("good", "1")
	r.source.put("bad", "1")
	r.start(r.config())
	r.source.mu.Lock()
	delete(r.source.objects, "bad")
	r.source.rev++
	r.source.commit(store.Event{Type: store.Deleted, Revision: r.source.rev}) // without its object
	r.settle()
	require.ErrorIs(t, r.ref.Stats().LastError, reflector.ErrLost)
	r.pass(seconds)
	r.synced()
	require.Equal(t, map[string]string{"good": "1"}, r.mirror.state)
}

func TestRelist_AfterLostEvents(t *testing.T) {
	r := newFixture(t)
	r.source.traits.Contiguous = true
	r.start(r.config())
	r.source.put("a", "lost")
	r.source.lose()
	r.source.put("b", "seen")
	r.pass(seconds)
	r.synced()
	stats := r.ref.Stats()
	require.Equal(t, uint64(1), stats.Skipped)
	require.Equal(t, uint64(1), stats.Relists[reflector.Skipped])
	var lost *reflector.LostError
	require.ErrorAs(t, stats.LastError, &lost)
	require.Equal(t, reflector.LostError{Reason: reflector.Skipped, Last: 0, Found: 1, Detail: lost.Detail}, *lost)
}

func TestRelist_AfterRepeatedEventsWhichAreDropped(t *testing.T) {
	r := newFixture(t)
	r.start(r.config())
	r.source.put("a", "1")
	r.source.put("a", "2")
	r.settle()
	r.source.rewind(1)
	r.pass(seconds)
	r.synced()
	require.Equal(t, uint64(1), r.ref.Stats().Repeated)
	require.Equal(t, []string{"Replace Started@0", "Changes@2", "Replace Repeated@2"}, r.mirror.told())
}

func TestRelist_OfADistrustedState(t *testing.T) {
	r := newFixture(t)
	r.source.put("a", "1")
	r.start(r.config())
	r.ref.Relist(reflector.Distrusted)
	r.ref.Relist(reflector.Reason(200))
	r.pass(seconds)
	require.Equal(t, []string{"Replace Started@1", "Replace Distrusted@1"}, r.mirror.told())
	r.ref.Relist(reflector.Reason(200))
	r.pass(seconds)
	require.Equal(t, []string{"Replace Requested@1"}, r.mirror.told())
	r.synced()
}

func TestSink_ThatIsFullHoldsEverythingUp(t *testing.T) {
	r := newFixture(t)
	cfg := r.config()
	cfg.MaxBatch = 1
	r.mirror.capacity = 2
	r.start(cfg)
	for i := range 5 {
		r.source.put(fmt.Sprint(i), "v")
	}
	r.settle()
	require.Equal(t, []string{"Replace Started@0", "Changes@1"}, r.mirror.told())
	offers := r.mirror.offers
	require.True(t, r.ref.Stats().Full)
	r.source.put("more", "v")
	r.pass(time.Hour)
	require.Equal(t, offers, r.mirror.offers, "it does not try until there is room")
	for range 3 {
		r.mirror.drain()
		r.ref.Room()
		r.settle()
	}
	r.synced()
	require.Equal(t, []string{"Changes@2", "Changes@3", "Changes@4", "Changes@5", "Changes@6"}, r.mirror.told())
	r.ref.Room() // without need
	r.synced()
	require.False(t, r.ref.Stats().Full)
}

func TestSink_ThatIsGoneEndsTheReflector(t *testing.T) {
	r := newFixture(t)
	r.start(r.config())
	r.mirror.answer(actors.Gone)
	r.source.put("a", "1")
	r.settle()
	require.False(t, r.ref.Alive())
	require.Equal(t, 1, r.system.Actors(), "only the parent is left")
	require.Equal(t, reflector.Ended, r.ref.Stats().Phase)
}

func TestReflector_IsDeterministic(t *testing.T) {
	run := func(seed uint64) (told []string) {
		r := newFixture(t)
		r.exec = actors.NewSeeded(seed)
		r.system = newSystem(t, actors.SystemConfig{Executor: r.exec, Clock: r.clock})
		r.parent = actors.Spawn(r.system, "host", func() actors.Behavior[func(*actors.Context)] { return &host{} }, actors.Options{})
		cfg := r.config()
		cfg.Backoff.Jitter, cfg.Rand = 1, rand.New(rand.NewPCG(seed, seed))
		r.source.traits = backend.Traits{Blocks: true}
		r.source.fail("watch", nil, errReset, errReset, nil, errReset)
		r.source.fail("list", errReset, nil, errReset)
		r.start(cfg)
		for i := range 60 {
			r.source.put(fmt.Sprint(i%7), fmt.Sprint(i))
			if i%13 == 0 {
				r.source.disturb(errReset)
			}
			r.exec.RunN(i % 5)
			r.clock.Advance(300 * time.Millisecond)
		}
		return append(r.mirror.told(), fmt.Sprint(r.ref.Stats()))
	}
	require.Equal(t, run(7), run(7))
	require.NotEqual(t, run(7), run(8))
}
