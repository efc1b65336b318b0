package world

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/explore/internal/storage"
	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
)

// sabotage is one fault in a seam, and the invariants by which it is found.
type sabotage struct {
	name string
	// seams makes the fault at the moment that its argument decides: one of the first
	// opportunities.
	seams   func(*once) seams[Thing]
	moments int
	foundBy []judge.Invariant
	// sideEffects are invariants that the fault may break, too, but only as a side effect of
	// how the seam makes it, or because a read shows it before a watch does. Breaking
	// these does not count as finding it.
	sideEffects []judge.Invariant
	// within is the number of seeds within which it must be found; zero means maxSabotaged.
	within uint64
}

// seamsOf makes the seams of a world, with the fault at a moment that the seed
// decides.
func (s sabotage) seamsOf(seed uint64) seams[Thing] {
	return s.seams(&once{rand.New(rand.NewPCG(seed, 3)).IntN(s.moments)})
}

// once decides the moment of a fault: after left opportunities.
type once struct{ left int }

// now is called at every opportunity for the fault, and returns true at one of them.
func (o *once) now() bool {
	o.left--
	return o.left == -1
}

// since is called like now, and returns true from that opportunity on.
func (o *once) since() bool {
	o.left--
	return o.left < 0
}

// sabotages are the known defects of list-watch engines. Each is applied to messages between
// the engine and its surroundings, as near as possible to where the defect would be. Most
// are applied once; those of which one occurrence would do no harm are applied from some
// time on, or always.
//
// A batch that storage visibly drops or repeats does no harm, since the engine notices the
// gap between the revisions and lists again. So the storage that drops one hides the gap,
// and events are repeated between the engine and the consumer.
var sabotages = []sabotage{
	{name: "drop one batch", seams: dropBatch, moments: 10,
		foundBy:     []judge.Invariant{judge.Reliable, judge.Resumable, judge.Bookmarkable, judge.PrevValue, judge.Conserved, judge.InitialState, judge.Genuine},
		sideEffects: reads},
	{name: "deliver one twice", seams: onDelivery(repeatEvent), moments: 10,
		foundBy: []judge.Invariant{judge.Unique, judge.InitialState}},
	{name: "swap two", seams: onDelivery(swapEvents), moments: 10,
		foundBy:     []judge.Invariant{judge.Ordered, judge.InitialState, judge.Bookmarkable, judge.IsCreate},
		sideEffects: []judge.Invariant{judge.Conserved, judge.PrevValue}}, // if no other event follows to swap it with, or if the other is conflated
	{name: "let a bookmark pass an event", seams: onDelivery(bookmarkBeforeEvent), moments: 10,
		foundBy: []judge.Invariant{judge.Bookmarkable, judge.Reliable}}, // it does not say that the watch has lost the event
	{name: "register one late", seams: registerLate, moments: 3,
		foundBy: []judge.Invariant{judge.Reliable, judge.Bookmarkable, judge.Resumable, judge.Conserved, judge.InitialState}},
	{name: "lose a Terminated", seams: loseTurnsOfStopped, moments: 2,
		foundBy:     []judge.Invariant{judge.Conserved},
		sideEffects: []judge.Invariant{judge.NothingLeft}},
	{name: "serve a stale snapshot as Latest", seams: onStorage(returnOldRevision), moments: 3,
		foundBy: []judge.Invariant{judge.ReadLatest, judge.Resumable, judge.InitialState}},
	{name: "forget a stalled watcher", seams: loseTurnsOfStalled, moments: 2,
		foundBy:     []judge.Invariant{judge.Conserved, judge.InitialState, judge.Ends},
		sideEffects: []judge.Invariant{judge.NothingLeft}},
	{name: "skip a delete in a diff", seams: onStorage(skipDelete), moments: 3,
		foundBy:     []judge.Invariant{judge.Reliable, judge.Atomic, judge.Bookmarkable, judge.InitialState, judge.Conserved, judge.Resumable, judge.Genuine, judge.Kept},
		sideEffects: append([]judge.Invariant{judge.Refusals}, reads...)}, // a read waits when the engine has compared, and lists again
	{name: "break a resume by one", seams: startOneLater, moments: 3,
		foundBy: []judge.Invariant{judge.Resumable, judge.Reliable}},
	{name: "refuse a write", seams: onStorage(refuseWrite), moments: 10,
		foundBy: []judge.Invariant{judge.Refusals}},
	{name: "lose a write", seams: onStorage(loseWrite), moments: 10,
		foundBy: []judge.Invariant{judge.Acknowledged}},
	{name: "store another value", seams: onStorage(storePrevious), moments: 10,
		foundBy: []judge.Invariant{judge.Acknowledged}},
	{name: "write an equal value", seams: changeConfig(func(c *engine.Config[Thing]) { c.Equal = func(Thing, Thing) bool { return false } }), moments: 1,
		foundBy: []judge.Invariant{judge.Acknowledged}, sideEffects: []judge.Invariant{Consistent}},
	{name: "forget what is not old", seams: changeConfig(func(c *engine.Config[Thing]) { c.Window.MinAge = 1 }), moments: 1,
		foundBy: []judge.Invariant{judge.Kept}},
	{name: "forget what is not too much", seams: changeConfig(func(c *engine.Config[Thing]) { c.Window.MaxEvents = 4 }), moments: 1,
		foundBy: []judge.Invariant{judge.Kept}},
	{name: "forget the last events", seams: changeConfig(func(c *engine.Config[Thing]) { c.Window.MinEvents = 0 }), moments: 1,
		foundBy: []judge.Invariant{judge.Kept}},
	{name: "keep too much", seams: changeConfig(func(c *engine.Config[Thing]) { c.Window.MaxEvents = 1000 }), moments: 1,
		foundBy: []judge.Invariant{judge.Kept}},
	{name: "keep too many bytes", seams: changeConfig(func(c *engine.Config[Thing]) { c.Window.MaxBytes = 0 }), moments: 1,
		foundBy: []judge.Invariant{judge.Kept}},
	{name: "forget what is not too many bytes", seams: changeConfig(func(c *engine.Config[Thing]) { c.Window.MaxBytes = 1 }), moments: 1,
		foundBy: []judge.Invariant{judge.Kept}},
	{name: "acknowledge a write that has failed", seams: onStorage(acknowledgeFailure), moments: 1,
		foundBy: []judge.Invariant{judge.Acknowledged}},
	{name: "go on without the revision of storage", seams: onStorage(forgetOutage), moments: 1,
		foundBy:     []judge.Invariant{judge.ReadLatest, judge.Resumable, judge.InitialState},
		sideEffects: []judge.Invariant{judge.ReadCached, judge.Refusals}}, // a reference asks by a list, and a watch may be refused for another reason
	{name: "keep what is to be discarded", seams: onStorage(keepHistory), moments: 3,
		foundBy: []judge.Invariant{judge.Kept}},
	{name: "delete another object", seams: onStorage(removeOther), moments: 3,
		foundBy: []judge.Invariant{judge.Acknowledged}},
	{name: "forget a TTL", seams: onStorage(storeWithoutTTL), moments: 3,
		foundBy: []judge.Invariant{judge.Expires}},
	{name: "make permanent what expires", seams: onStorage(forgetExpiry), moments: 1,
		foundBy: []judge.Invariant{judge.Expires}},
	{name: "create what is there", seams: onStorage(createAnyway), moments: 3,
		foundBy: []judge.Invariant{judge.Refusals}},
	{name: "write over what another has written", seams: onStorage(putAnyway), moments: 1,
		foundBy:     []judge.Invariant{judge.Refusals},
		sideEffects: []judge.Invariant{judge.Acknowledged}}, // if the other has written the same
	{name: "read less without a cache", seams: omitFromDirectRead, moments: 3,
		foundBy: []judge.Invariant{judge.ReadState, judge.ReadLatest, judge.ReadCached, judge.ReadNotOlder, judge.ReadExact, judge.Refusals, judge.InitialState}},
	{name: "say that more objects remain than do", seams: remainOneMore, moments: 3,
		foundBy: []judge.Invariant{judge.ReadState}},
	{name: "compare with something else", seams: onStorage(omitFromComparison), moments: 3,
		foundBy:     []judge.Invariant{Consistent},
		sideEffects: []judge.Invariant{judge.Atomic}}, // the engine lists again, which a scenario with transactions does not expect
	{name: "begin without the history that storage keeps", seams: forgetHistory, moments: 1,
		foundBy: []judge.Invariant{judge.Kept}},
	{name: "begin with less than storage had", seams: onStorage(omitFromPast), moments: 1,
		foundBy: []judge.Invariant{judge.InitialState, judge.Reliable, judge.Resumable, judge.Bookmarkable, judge.Conserved, judge.PrevValue, judge.IsCreate, judge.ReadState, judge.ReadCached, judge.ReadLatest, judge.ReadExact, judge.ReadNotOlder, Consistent}},
	{name: "list no more", seams: onStorage(failAllLists), moments: 3,
		foundBy:     []judge.Invariant{judge.Recovers},
		sideEffects: []judge.Invariant{judge.Conserved}}, // a drain waits for the lists
	{name: "keep a deletion from a watch that starts in the future", seams: onDelivery(dropFutureDeletion), moments: 2,
		foundBy: []judge.Invariant{judge.Reliable, judge.Resumable, judge.Bookmarkable, judge.Conserved, judge.PrevValue, judge.IsCreate}},
	{name: "drop what a channel hands over", seams: onDelivery(dropFromChannel), moments: 3,
		foundBy: []judge.Invariant{judge.Reliable, judge.Resumable, judge.Bookmarkable, judge.Conserved, judge.InitialState, judge.IsCreate, judge.PrevValue}},
	{name: "do not tell a handler of an informer", seams: dropNotification, moments: 5,
		foundBy: []judge.Invariant{judge.Conserved, judge.IsCreate, judge.PrevValue}},
	{name: "tell a handler of an informer of two changes as one", seams: mergeNotifications, moments: 3,
		foundBy:     []judge.Invariant{judge.Reliable},
		sideEffects: []judge.Invariant{judge.Conserved, judge.IsCreate, judge.PrevValue}}, // if no other update follows
	{name: "tell a handler of an informer of another deletion", seams: spoilDeleted, moments: 3,
		foundBy: []judge.Invariant{judge.Genuine}},
	{name: "show what an informer had", seams: staleInformer, moments: 5,
		foundBy:     []judge.Invariant{judge.Recovers},
		sideEffects: []judge.Invariant{judge.ReadState}}, // it does not have an index that was added since
	{name: "forget an object in an index of an informer", seams: omitIndexed, moments: 3,
		foundBy: []judge.Invariant{judge.ReadState}},
	{name: "show what an index of an informer had", seams: staleIndex, moments: 3,
		foundBy: []judge.Invariant{judge.ReadState}},
	{name: "show what a reference had", seams: staleReference, moments: 3,
		foundBy: []judge.Invariant{judge.ReadCached}},
	{name: "drop what storage itself has", seams: onDelivery(dropWithoutCache), moments: 3,
		foundBy: []judge.Invariant{judge.Reliable, judge.Resumable, judge.Bookmarkable, judge.Conserved, judge.InitialState, judge.IsCreate, judge.PrevValue}},
	{name: "resume in the middle of a revision", seams: resumeInsideTransaction, moments: 3,
		foundBy: []judge.Invariant{judge.Resumable}},
	{name: "conflate emitted values away unmarked", seams: onDelivery(dropAfterGapMark), moments: 1,
		foundBy: []judge.Invariant{judge.Reliable}},
	{name: "conflate away unmarked what came and went", seams: onDelivery(dropChangeMark), moments: 1,
		foundBy: []judge.Invariant{judge.Reliable}},
	{name: "say that what was received was not", seams: onDelivery(markSynthetic), moments: 10,
		foundBy: []judge.Invariant{judge.Genuine}},
	{name: "say that a change stands for several", seams: onDelivery(markConflated), moments: 5,
		foundBy: []judge.Invariant{judge.Reliable}},
	{name: "say that emitted values are lost", seams: onDelivery(markAfterGap), moments: 3,
		foundBy: []judge.Invariant{judge.Genuine}},
	{name: "say that a conflation has left out what it has not", seams: onDelivery(markAfterConflation), moments: 1,
		foundBy: []judge.Invariant{judge.Genuine}},
	{name: "lose count of what is conflated", seams: reportNoneLost, moments: 3,
		foundBy: []judge.Invariant{judge.Reliable}},
	{name: "serve the revisions of before a restart", seams: sameRevisions, moments: 1,
		foundBy: []judge.Invariant{judge.Resumable}},
	{name: "take other storage for the same", seams: keepStorageID, moments: 1,
		foundBy:     []judge.Invariant{judge.Genuine, judge.Recovers, judge.Reliable, judge.OneTimeline, judge.Refusals},
		sideEffects: reads},
	{name: "take the same storage for another", seams: renameStorage, moments: 3,
		foundBy:     []judge.Invariant{judge.Ends, judge.Kept},
		sideEffects: []judge.Invariant{judge.Refusals, judge.OneTimeline}}, // a page may be of the storage that has no name any more
	{name: "list what storage had before it went back", seams: listBeforeNoticing, moments: 1,
		foundBy: []judge.Invariant{judge.ReadLatest}},
	{name: "lose a write before it is noticed that storage has gone back", seams: onStorage(loseUnnoticed), moments: 1,
		foundBy: []judge.Invariant{judge.Acknowledged}},
	{name: "list from storage and watch another", seams: keepSourceID, moments: 1, within: 2000, // it takes equal revisions of a key
		foundBy: []judge.Invariant{judge.Genuine, judge.ReadState, judge.ReadCached, judge.Conserved}},
	{name: "continue a watch on another timeline", seams: forgetTimeline(false), moments: 1,
		foundBy: []judge.Invariant{judge.OneTimeline}},
	{name: "continue a watch of before a restart", seams: withSameRevisions(forgetTimeline(true)), moments: 1,
		foundBy:     []judge.Invariant{judge.OneTimeline},
		sideEffects: []judge.Invariant{judge.Resumable}}, // if nothing was listed
	{name: "continue a list on another timeline", seams: forgetTokenTimeline(ofPaging), moments: 1,
		foundBy: []judge.Invariant{judge.OneTimeline}},
	{name: "continue another engine's list on another timeline", seams: forgetTokenTimeline(ofOther), moments: 1,
		foundBy: []judge.Invariant{judge.OneTimeline}},
	{name: "resume at a checkpoint of another timeline", seams: takeAnyCheckpoint, moments: 1,
		foundBy: []judge.Invariant{judge.OneTimeline}},
	{name: "list from the first key on", seams: forgetListStart, moments: 1,
		foundBy: []judge.Invariant{judge.ReadState}},
	{name: "continue a list of before a restart", seams: withSameRevisions(forgetTokenTimeline(afterRestart)), moments: 1,
		foundBy:     []judge.Invariant{judge.OneTimeline},
		sideEffects: []judge.Invariant{judge.Resumable}},
	{name: "refuse a past state that is kept", seams: refuse("read-exact", &store.ExpiredError{Requested: 2, Oldest: 3}), moments: 3,
		foundBy: []judge.Invariant{judge.Refusals}},
	{name: "refuse a next page that is kept", seams: refuse("next page, continued", &store.ExpiredError{Requested: 2, Oldest: 3}), moments: 2,
		foundBy: []judge.Invariant{judge.Refusals}},
	{name: "refuse pages that are kept", seams: refuse("pages, continued", &store.ExpiredError{Requested: 2, Oldest: 3}), moments: 2,
		foundBy: []judge.Invariant{judge.Refusals}},
	{name: "fail a read of the newest state that storage has not failed", seams: refuse("read-latest", storage.ErrOutage), moments: 3,
		foundBy: []judge.Invariant{judge.Refusals}},
	{name: "fail a read of a past state that storage has not failed", seams: refuse("read-exact", storage.ErrOutage), moments: 3,
		foundBy: []judge.Invariant{judge.Refusals}},
	{name: "wait for what has come", seams: refuse("read-not-older", &store.FutureError{Requested: 3, Current: 2}), moments: 3,
		foundBy: []judge.Invariant{judge.Refusals}},
	{name: "refuse a read for nothing", seams: refuse("read-cached", &engine.NotReadyError{}), moments: 3,
		foundBy: []judge.Invariant{judge.Refusals}},
	{name: "refuse a watch for nothing", seams: refuse("w", &engine.NotReadyError{}), moments: 3,
		foundBy: []judge.Invariant{judge.Refusals}},
	{name: "refuse the present state as expired", seams: refuse("state of w", &store.ExpiredError{Requested: 2, Oldest: 3}), moments: 3,
		foundBy: []judge.Invariant{judge.Refusals}},
	{name: "refuse a watch without a cache for nothing", seams: refuseDirectWatch, moments: 3,
		foundBy: []judge.Invariant{judge.Refusals}},
	{name: "let a watch wait for what has come", seams: refuse("w", &store.FutureError{Requested: 3, Current: 2}), moments: 3,
		foundBy: []judge.Invariant{judge.Refusals}},
	{name: "take a handler's failure for none", seams: forgetFailure, moments: 3,
		foundBy: []judge.Invariant{Retries, judge.Ends, judge.Reliable, judge.Resumable, judge.Bookmarkable, judge.Conserved, judge.InitialState, judge.IsCreate, judge.PrevValue}},
	{name: "call a handler too often", seams: changePolicy(func(p *engine.ErrorPolicy) { p.Attempts++ }), moments: 1,
		foundBy:     []judge.Invariant{Retries, judge.Resumable},
		sideEffects: []judge.Invariant{judge.Conserved}}, // if the world ends in the pause before one call more
	{name: "call a handler again too early", seams: changePolicy(func(p *engine.ErrorPolicy) { p.Backoff = 1 }), moments: 1,
		foundBy: []judge.Invariant{Retries}},
	{name: "go on after a handler's last attempt", seams: changePolicy(func(p *engine.ErrorPolicy) { p.Skip = true }), moments: 1,
		foundBy: []judge.Invariant{Retries, judge.Ends, judge.Resumable}},
	{name: "skip an event silently", seams: changeConfig(func(c *engine.Config[Thing]) { c.OnError = nil }), moments: 1,
		foundBy: []judge.Invariant{Retries}},
	{name: "close in place of a drain", seams: closeAtDrain(isCached), moments: 1,
		foundBy: []judge.Invariant{judge.Conserved, judge.InitialState}},
	{name: "do not drain what a loop is in the middle of", seams: closeOnLoops, moments: 1,
		foundBy: []judge.Invariant{judge.Conserved, judge.InitialState}},
	{name: "keep from an informer what a drain delivers", seams: func(*once) seams[Thing] { return seams[Thing]{notify: dropInDrain} }, moments: 1, within: 1000, // few scenarios have an informer and a drain
		foundBy: []judge.Invariant{judge.Conserved}},
	{name: "accept writes in a drain", seams: acceptInDrain, moments: 1,
		foundBy: []judge.Invariant{judge.Conserved}},
	{name: "close the engine without a cache in place of a drain", seams: closeAtDrain(isUncached), moments: 1,
		foundBy: []judge.Invariant{judge.Conserved, judge.InitialState}},
	{name: "say of a drain that was cut short that it was not", seams: spoilDrainError(false, hideError), moments: 1,
		foundBy: []judge.Invariant{judge.Conserved, judge.InitialState}},
	{name: "name no watch that a drain has not served", seams: spoilDrainError(false, nameNone), moments: 1,
		foundBy: []judge.Invariant{judge.Conserved}},
	{name: "say that all was delivered after a drain that was cut short", seams: spoilDrainError(true, hideError), moments: 1,
		foundBy: []judge.Invariant{judge.Conserved}},
	{name: "name no watch again after a drain that was cut short", seams: spoilDrainError(true, nameNone), moments: 1,
		foundBy: []judge.Invariant{judge.Conserved}},
	{name: "try again a write whose outcome is unknown", seams: onUnanswered(tryAgain), moments: 1,
		foundBy: []judge.Invariant{judge.Acknowledged}},
	{name: "take a write whose outcome is unknown for one that has failed", seams: onUnanswered(takeForFailed), moments: 1,
		foundBy: []judge.Invariant{judge.Acknowledged}},
	{name: "take a write whose outcome is unknown for one that was done", seams: onUnanswered(takeForDone), moments: 1,
		foundBy: []judge.Invariant{judge.Acknowledged}},
	{name: "doubt a write that was acknowledged", seams: onStorage(doubtAnswer), moments: 10,
		foundBy: []judge.Invariant{judge.Refusals}},
	{name: "keep from watches what was written without an answer", seams: dropUnanswered, moments: 1,
		foundBy: []judge.Invariant{judge.Reliable, judge.Resumable, judge.Bookmarkable, judge.Conserved, judge.InitialState, judge.IsCreate, judge.PrevValue}},
	{name: "never rest", seams: onStorage(wakeForever), moments: 10,
		foundBy: []judge.Invariant{judge.Rests}},
}

// reads are the invariants of reads: the user's, and the engine's own comparison.
var reads = []judge.Invariant{judge.ReadState, judge.ReadLatest, judge.ReadCached, judge.ReadNotOlder, judge.ReadExact, Consistent}

// maxSabotaged is the number of seeds within which most sabotages must be found.
const maxSabotaged = 200

func TestSabotage_EveryOneIsFound(t *testing.T) {
	for _, s := range sabotages {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			seed, f := find(t, s)
			require.NotNil(t, f, "not found within %d seeds", cmp.Or(s.within, maxSabotaged))
			t.Logf("seed %d: %v", seed, f)
			require.Contains(t, s.foundBy, f.Invariant, f)
		})
	}
}

// find returns the first seed that breaks an invariant other than those in sideEffects, and the
// failure.
func find(t *testing.T, s sabotage) (uint64, *judge.Failure) {
	cfg, err := Things().WithDefaults()
	require.NoError(t, err)
	for seed := uint64(1); seed <= cmp.Or(s.within, maxSabotaged); seed++ {
		o := simulate(&cfg, drawn(cfg, seed), s.seamsOf(seed), nil)
		require.NoError(t, o.Err)
		if o.Failure != nil && !slices.Contains(s.sideEffects, o.Failure.Invariant) {
			return seed, o.Failure
		}
	}
	return 0, nil
}

// A defect can be corrected only if it is seen in few steps, each time.
func TestSabotage_IsShrunkAndReplayed(t *testing.T) {
	s := sabotages[slices.IndexFunc(sabotages, func(s sabotage) bool { return s.name == "deliver one twice" })]
	cfg, err := Things().WithDefaults()
	require.NoError(t, err)
	seed, f := find(t, s)
	require.NotNil(t, f)
	long := drawn(cfg, seed)
	shrunk := func() (script.Scenario, []string) {
		short := script.Shrink(t.Context(), long, func(short script.Scenario) bool {
			o := simulate(&cfg, short, s.seamsOf(seed), nil)
			return o.Failure != nil && o.Failure.Invariant == f.Invariant
		})
		var lines []string
		simulate(&cfg, short, s.seamsOf(seed), func(line string) { lines = append(lines, line) })
		return short, lines
	}
	short, lines := shrunk()
	require.Less(t, len(short.Steps), 15, short.Steps)
	require.Less(t, len(short.Steps), len(long.Steps))
	require.Contains(t, lines[len(lines)-1], "BROKEN: "+string(f.Invariant))
	again, linesAgain := shrunk()
	require.Equal(t, short, again)
	require.Equal(t, lines, linesAgain)
}
