package reflector

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// TestMachine_KeepsItsGuarantees feeds the machine random inputs and checks its
// effects against the guarantees of a Reflector.
func TestMachine_KeepsItsGuarantees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{T: t, now: time.Unix(0, 0)}
		w.m.rules = storyRules()
		w.m.warm = rapid.Bool().Draw(t, "warm")
		w.m.warmFrom = store.Revision(rapid.IntRange(0, 20).Draw(t, "warm from"))
		w.m.listWhenBehind = store.Revision(rapid.IntRange(0, 5).Draw(t, "list when behind"))
		w.m.begin(Started)
		w.perform()
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			w.step()
			w.perform()
			w.check()
		}
	})
}

// world is everything around a machine.
type world struct {
	*rapid.T
	m   machine
	now time.Time

	calling  bool // a call is under way
	watching bool // a watch is open
	waiting  bool // a delay is running
	free     int  // calls that may begin without a delay before them
	full     bool
	stopped  bool

	measured bool           // the last call measured the distance
	cold     bool           // a warm start has been given up
	newest   store.Revision // where the source was last seen
	told     store.Revision // up to which the sink knows
	replaced bool
	outage   bool

	pagesOf   []string // the storage that each page of the last list was of, if it told
	watchOf   string   // that of the last watch
	replaceOf string   // that of the last Replace
}

// step makes one of the currently possible inputs.
func (w *world) step() {
	w.now = w.now.Add(time.Duration(rapid.IntRange(0, 100).Draw(w.T, "seconds")) * time.Second)
	err := rapid.SampledFrom([]error{nil, nil, nil, nil, nil, nil, storyErrors["broken"], store.ErrClosed, store.ErrExpired, store.ErrFuture, store.ErrFuture}).Draw(w.T, "err")
	switch rapid.SampledFrom([]string{"source", "source", "source", "wake", "room", "relist"}).Draw(w.T, "what") {
	case "source":
		w.sourceDoes(err)
	case "wake":
		if w.waiting {
			w.waiting = false
			w.free = 1
			w.m.wake()
		}
	case "room":
		w.full = false
		w.m.room()
	case "relist":
		w.m.relist(Distrusted, w.now)
	}
}

func (w *world) sourceDoes(err error) {
	switch {
	case w.calling && w.m.listing():
		w.calling = false
		page := w.page()
		of := w.answeredBy()
		if err == nil {
			w.newest = page.Revision
			if of != "" {
				w.pagesOf = append(w.pagesOf, of)
			}
		}
		w.m.page(page, err, w.now)
	case w.calling:
		w.calling, w.watching, w.watchOf = false, err == nil, w.answeredBy()
		w.m.watch(err, w.now)
	case w.watching && w.m.pulling():
		w.m.batch(w.batch(), err, w.now)
	}
}

// answeredBy draws the storage of the next answer, empty if that does not tell.
func (w *world) answeredBy() string {
	w.m.answeredBy = rapid.SampledFrom([]string{"", "x", "x", "x", "y"}).Draw(w.T, "storage")
	return w.m.answeredBy
}

func (w *world) page() *backend.List {
	rev := store.Revision(rapid.Uint64Range(0, 20).Draw(w.T, "revision"))
	if w.m.asked.Continue != "" && rapid.IntRange(0, 3).Draw(w.T, "torn") < 3 {
		rev = w.m.listed.Revision
	}
	return &backend.List{
		Revision: rev,
		Continue: rapid.SampledFrom([]string{"", "", "t1", "t2"}).Draw(w.T, "continue"),
	}
}

func (w *world) batch() backend.Batch {
	at := w.m.stats.Revision + store.Revision(rapid.SampledFrom([]int{0, 0, 0, 0, 1}).Draw(w.T, "hole"))
	b := backend.Batch{After: at, Through: at}
	for range rapid.IntRange(0, 4).Draw(w.T, "events") {
		b.Through += store.Revision(rapid.IntRange(0, 2).Draw(w.T, "gap"))
		o := &store.Object{Key: rapid.SampledFrom([]string{"a", "b"}).Draw(w.T, "key"), Revision: b.Through}
		b.Events = append(b.Events, store.Event{Type: store.Modified, Revision: b.Through, Object: o})
	}
	return b
}

// perform carries out the machine's effects and fails on forbidden ones.
func (w *world) perform() {
	for len(w.m.out) > 0 {
		e := w.m.out[0]
		w.m.out = w.m.out[1:]
		if w.stopped {
			w.Fatalf("wants %d after the end", e.do)
		}
		switch e.do {
		case doList, doOpen:
			w.begins(e)
		case doClose:
			w.demand(w.watching, "hangs up what is not open")
			w.watching = false
		case doWait:
			w.demand(e.delay >= DefaultInitial && e.delay <= DefaultMax, "waits too short or too long")
			w.waiting, w.free = true, 0
		case doReport:
			if errors.Is(e.err, ErrWentBack) {
				w.demand(w.listOf() == w.replaceOf, "refuses an older list of another storage")
			}
		case doOffer:
			w.offer()
		case doStop:
			w.stopped = true
		}
	}
}

// begins allows a call only after a delay, except for: the first list; more
// pages; the watch after a list; one list in one piece for one that tore; the
// lists of a warm start; and what follows on measuring the distance.
func (w *world) begins(e effect) {
	coldAfterAll := w.m.warmth.tries > maxWarmTries && !w.cold
	w.cold = w.cold || coldAfterAll
	warm := e.do == doList && (w.m.warmth.stage != warmNot || coldAfterAll)
	w.demand(!w.calling && (!w.watching || warm), "calls while something is open")
	w.demand(len(w.m.held) == 0, "calls while the sink has no room")
	torn := e.do == doList && e.list.Limit == 0 && e.list.Continue == ""
	paging := e.do == doList && e.list.Continue != ""
	first := w.m.stats.Lists+w.m.stats.Watches == 1
	w.demand(first || paging || torn || warm || w.measured || w.free > 0, "calls without a delay")
	w.measured = w.m.measuring
	if e.do == doList && !paging {
		w.pagesOf = nil
	}
	if !paging && !torn && !warm {
		w.free = 0
	}
	w.calling = true
}

func (w *world) offer() {
	if w.full = w.full || rapid.Bool().Draw(w.T, "full"); w.full {
		w.m.full()
		return
	}
	w.take(w.m.held[0])
	w.m.accepted()
}

// take checks the guarantees to the sink.
func (w *world) take(u Update) {
	switch u.Kind {
	case Replace:
		w.demand(u.StoreID == w.listOf(), "calls a list that of another storage")
		w.demand(u.Revision >= w.told || u.StoreID != w.replaceOf || w.mayGoBack(u.Reason), "goes back")
		w.told, w.replaced, w.replaceOf, w.outage = u.Revision, true, u.StoreID, false
		w.free = 1
		return
	case Changes:
		w.demand(w.replaced && !w.outage && len(u.Events) > 0, "changes out of place")
		w.demand(u.Events[0].Revision > w.told, "repeats")
		w.demand(u.Events[len(u.Events)-1].Revision <= u.Revision, "says too little")
	case Progress:
		w.demand(w.replaced && (u.Revision > w.told || w.outage), "no progress")
		w.outage = false
	case Unavailable:
		w.demand(!w.outage || u.Final, "repeats an outage")
		w.outage = true
		return
	}
	w.demand(w.watchOf == "" || w.watchOf == w.replaceOf, "continues a list by a watch of another storage")
	w.told = u.Revision
}

// listOf returns the storage that the last list was of, empty if none of its pages told.
func (w *world) listOf() string {
	if len(w.pagesOf) == 0 {
		return ""
	}
	for _, of := range w.pagesOf {
		w.demand(of == w.pagesOf[0], "accepts a list of two storages")
	}
	return w.pagesOf[0]
}

// mayGoBack reports whether a list for that reason may be older than the last one of the same
// storage. One that has an identity changes it when it goes back.
func (w *world) mayGoBack(why Reason) bool {
	return why == Repeated || why == Restored || why == Future && w.replaceOf == ""
}

// check demands that a machine without effects waits for an input that will
// come.
func (w *world) check() {
	w.demand(len(w.m.held) <= 2, "holds more than two updates")
	w.demand(w.calling || w.watching || w.waiting || w.m.stats.Full || w.stopped, "waits for nothing")
	w.demand(w.m.stats.Full == (len(w.m.held) > 0), "holds an update without need")
	if w.m.stats.Phase == Watching && w.m.stats.Revision < w.m.warmth.until {
		w.demand(w.newest >= w.m.warmth.until, "waits for a revision that the source does not have")
	}
}

func (w *world) demand(ok bool, problem string) {
	w.Helper()
	if !ok {
		w.Fatalf("machine %s: %+v", problem, w.m.stats)
	}
}
