package reflector

import (
	"errors"
	"slices"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// machine decides what a Reflector does. It is plain data: inputs are its
// methods, and what is to be done about them is appended to out, for its owner
// to do in order and to answer. It reads no clock, and random is its only
// source of chance.
//
//	        begin                 last page               opened
//	Idle ──────────▶ Listing ───────────────▶ Opening ─────────────▶ Watching
//	                  ▲    │ failed            ▲    │ refused           │ closed, broken,
//	                  │    ▼                   │    ▼                   ▼ expired, lost
//	                  └──────────────────── Waiting ◀───────────────────┘
//	                    why is set            due      why is zero: resume
type machine struct {
	rules
	stats Stats
	out   []effect

	// why is the reason for which the next attempt must list; zero: it may
	// resume after stats.Revision.
	why Reason
	// due: the next attempt's time has come; it waits only for the sink.
	due bool
	// resumes counts the attempts to resume since a watch last brought anything.
	resumes int
	// outage: the sink was told Unavailable and nothing since.
	outage bool
	// opened is when the watch was opened.
	opened time.Time

	// asked is the page being fetched, listed the revision and objects of those
	// before it. whole: pages could not be read to their end at one revision, so
	// that lists are asked for in one piece until one succeeds.
	asked  backend.ListOptions
	listed backend.List
	whole  bool

	// held are the updates that the sink has not accepted, oldest first. While
	// there is one, no call is begun and nothing is taken from the watch, so
	// there are never more than two.
	held []Update
}

// rules are what of the Config the machine decides by.
type rules struct {
	prefix         string
	pageSize       int
	resumeAttempts int
	contiguous     bool
	state          bool
	backoff        Backoff
	permanent      func(error) bool
	random         func() float64
}

// action is something that the machine wants done.
type action uint8

const (
	doList   action = iota + 1 // fetch the page list; answer with page
	doOpen                     // open a watch after from; answer with watch
	doPull                     // take a batch, when other messages had their turn; answer with batch
	doHangUp                   // close the watch
	doWait                     // after delay, say wake
	doOffer                    // offer held[0] to the sink; answer with verdict
	doReport                   // pass err to OnError
	doStop                     // it is over
)

// effect is an action with what it needs.
type effect struct {
	do    action
	list  backend.ListOptions
	from  store.Revision
	delay time.Duration
	err   error
}

func (m *machine) do(e effect) { m.out = append(m.out, e) }

// begin starts with a list: at once the first time, but a Reflector that failed
// and was restarted draws on the budget like everybody who comes back.
func (m *machine) begin(why Reason) {
	if m.stats.Phase != Idle {
		return
	}
	m.need(why)
	if why == Started {
		m.attempt()
	} else {
		m.later()
	}
}

// need makes the next attempt a list. The first reason stands until the list.
func (m *machine) need(why Reason) {
	if m.why == 0 {
		m.why = why
		m.stats.Relists[why]++
	}
}

// attempt lists or resumes, unless the sink has to make room first.
func (m *machine) attempt() {
	m.stats.Phase, m.due = Waiting, true
	switch {
	case len(m.held) > 0:
	case m.why != 0:
		m.list()
	default:
		m.open()
	}
}

func (m *machine) open() {
	m.stats.Phase, m.due = Opening, false
	m.stats.Watches++
	m.do(effect{do: doOpen, from: m.stats.Revision})
}

// watch takes the answer to doOpen.
func (m *machine) watch(err error, now time.Time) {
	switch {
	case m.stats.Phase != Opening:
	case err != nil:
		m.broken(err)
	case m.why != 0: // asked for meanwhile
		m.do(effect{do: doHangUp})
		m.later()
	default:
		m.stats.Phase, m.opened = Watching, now
		m.following()
	}
}

// following goes on with an open watch. If the sink believes in an outage, the
// end of it is told first.
func (m *machine) following() {
	if m.outage {
		m.offer(Update{Kind: Progress, Revision: m.stats.Revision})
		return
	}
	m.do(effect{do: doPull})
}

// pulling reports whether a batch is wanted now. One that is taken at another
// time would be lost.
func (m *machine) pulling() bool { return m.stats.Phase == Watching && len(m.held) == 0 }

// batch takes the answer to doPull.
func (m *machine) batch(b backend.Batch, err error, now time.Time) {
	if err != nil {
		m.hangUp(now)
		m.broken(err)
		return
	}
	n, lost := auditBatch(b, m.stats.Revision, m.contiguous)
	if lost != nil {
		m.tell(b.Events[:n], lost.Last, nil)
		m.lost(lost, now)
		return
	}
	m.tell(b.Events, b.Through, b.State)
}

// tell passes on what a watch brought.
func (m *machine) tell(events []store.Event, through store.Revision, state *store.TreeView) {
	switch {
	case len(events) > 0:
		m.stats.Batches++
		m.stats.Events += uint64(len(events))
		m.offer(Update{Kind: Changes, Revision: through, Events: events, State: state})
	case through > m.stats.Revision:
		m.stats.Batches++
		m.offer(Update{Kind: Progress, Revision: through})
	default:
		return // nothing now: the source will say when
	}
	m.stats.Revision, m.resumes = through, 0
}

// lost gives up a watch that is not what happened.
func (m *machine) lost(lost *LostError, now time.Time) {
	if lost.Reason == Skipped {
		m.stats.Skipped++
	} else {
		m.stats.Repeated++
	}
	m.hangUp(now)
	m.report(lost)
	m.need(lost.Reason)
	m.later()
}

// hangUp closes the watch. Only here is it seen whether the source was
// healthy, and so the budget filled up again.
func (m *machine) hangUp(now time.Time) {
	if now.Sub(m.opened) >= m.backoff.HealthyAfter {
		m.stats.Attempts, m.resumes = 0, 0
	}
	m.do(effect{do: doHangUp})
}

// broken handles a watch that was refused or has ended, with err.
func (m *machine) broken(err error) {
	closed := m.stats.Phase == Watching && errors.Is(err, store.ErrClosed)
	switch {
	case errors.Is(err, store.ErrExpired):
		m.report(err)
		m.need(Expired)
		m.later()
	case errors.Is(err, store.ErrFuture):
		m.report(err)
		m.need(Future)
		m.later()
	case closed: // as servers do now and then; an outage only if it cannot be resumed
		m.report(err)
		m.later()
	default:
		m.failed(err)
	}
}

// failed handles an error that means that the source is out of reach.
func (m *machine) failed(err error) {
	m.report(err)
	if m.permanent(err) {
		m.end(err)
		return
	}
	m.later()
	if !m.outage {
		m.stats.Outages++
		m.offer(Update{Kind: Unavailable, Err: err})
	}
}

// later makes the next attempt when the one budget of delays allows it. There
// is no other way back to the source, so no path can spin.
func (m *machine) later() {
	if m.why == 0 {
		m.resumes++
		if m.resumes >= m.resumeAttempts {
			m.need(Stuck)
		}
	}
	m.stats.Phase, m.due = Waiting, false
	m.stats.Delay = m.backoff.delay(m.stats.Attempts, m.random())
	m.stats.Attempts++
	m.do(effect{do: doWait, delay: m.stats.Delay})
}

// wake says that the delay is over.
func (m *machine) wake() {
	if m.stats.Phase == Waiting && !m.due {
		m.attempt()
	}
}

// relist is somebody's demand for a list. One that is under way will do.
func (m *machine) relist(why Reason, now time.Time) {
	switch m.stats.Phase {
	case Watching:
		m.need(why)
		m.hangUp(now)
		m.later()
	case Opening:
		m.need(why)
	case Waiting:
		m.need(why)
		if m.due { // only the sink is waited for, and its pace is no delay
			m.later()
		}
	}
}

// end gives up. The sink is told, even if it has no room now.
func (m *machine) end(err error) {
	m.stats.Phase = Ended
	m.stats.Outages++
	m.offer(Update{Kind: Unavailable, Err: err, Final: true})
}

func (m *machine) report(err error) {
	m.count(err)
	m.do(effect{do: doReport, err: err})
}

func (m *machine) count(err error) {
	m.stats.Errors++
	m.stats.LastError = err
}

// offer queues an update for the sink.
func (m *machine) offer(u Update) {
	m.outage = u.Kind == Unavailable
	m.held = append(m.held, u)
	if len(m.held) == 1 {
		m.do(effect{do: doOffer})
	}
}

// accepted is the sink's answer to doOffer: it took the update.
func (m *machine) accepted() {
	m.held = slices.Delete(m.held, 0, 1) // also lets go of what it pointed to
	switch {
	case len(m.held) > 0:
		m.do(effect{do: doOffer})
	case m.stats.Phase == Ended:
		m.do(effect{do: doStop})
	case m.stats.Phase == Watching:
		m.do(effect{do: doPull})
	case m.stats.Phase == Waiting && m.due:
		m.attempt()
	}
}

// full is the sink's answer to doOffer: it has no room. Nothing more happens
// until room.
func (m *machine) full() { m.stats.Full = true }

// room says that the sink has room again.
func (m *machine) room() {
	if m.stats.Full {
		m.stats.Full = false
		m.do(effect{do: doOffer})
	}
}

// gone is the sink's answer to doOffer: it is no more.
func (m *machine) gone() {
	m.stats.Phase, m.held = Ended, nil
	m.do(effect{do: doStop})
}
