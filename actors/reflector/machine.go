package reflector

import (
	"errors"
	"slices"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/tree"
)

// machine decides what a Reflector does. It is a pure state machine: its methods
// are the inputs, and each appends effects to out, which its owner carries out
// in order and answers. It reads no clock, and random is its only source of
// randomness.
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

	// why is the reason that the next attempt must list; zero: it may resume
	// after stats.Revision.
	why Reason
	// due: the delay is over, and the next attempt waits only for the sink.
	due bool
	// resumes counts the attempts to resume since a watch last delivered.
	resumes int
	// outage: the last update offered was Unavailable.
	outage bool
	// opened is when the watch was opened.
	opened time.Time
	// shared: the sink has been given a state of the source since it was last given objects,
	// so it keeps none of its own.
	shared bool

	// asked is the page being fetched, listed the revision and objects of the
	// pages before it. whole: paging failed, so lists are requested without a
	// limit until one succeeds.
	asked  backend.ListOptions
	listed backend.List
	whole  bool
	warmth warmth
	// measuring: the list under way is of measure.
	measuring bool

	// storeID is the identity of the storage that stats.Revision is of, answeredBy
	// that of the storage that gave the last answer, and listedOf that of the storage
	// being listed. Each is empty if unknown.
	storeID, answeredBy, listedOf string

	// held are the updates that the sink has not accepted, oldest first. While
	// there is one, the machine starts no call and pulls no batch, so there are
	// at most two.
	held []Update
}

// rules is the part of the Config that the machine needs.
type rules struct {
	prefix         string
	pageSize       int
	resumeAttempts int
	contiguous     bool
	state          bool
	warm           bool
	warmFrom       store.Revision
	listWhenBehind store.Revision
	backoff        Backoff
	permanent      func(error) bool
	random         func() float64
}

// action is what an effect does.
type action uint8

const (
	doList     action = iota + 1 // fetch the page list; answer with page
	doOpen                       // open a watch after from; answer with watch
	doPull                       // take a batch, after pending messages; answer with batch
	doClose                      // close the watch
	doWait                       // after delay, call wake
	doProgress                   // request progress of the watch
	doOffer                      // offer held[0] to the sink; answer with verdict
	doReport                     // pass err to OnError
	doStop                       // stop the actor
)

// effect is an action with its arguments.
type effect struct {
	do    action
	list  backend.ListOptions
	from  store.Revision
	delay time.Duration
	err   error
}

func (m *machine) do(e effect) { m.out = append(m.out, e) }

// begin starts with a list: immediately the first time, after a backoff delay
// when the Reflector was restarted.
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

// need makes the next attempt a list. The first reason is kept until the list.
func (m *machine) need(why Reason) {
	if m.why == 0 {
		m.why = why
		m.stats.Relists[why]++
	}
}

// attempt lists or resumes, unless the sink is full.
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

// open resumes: with a watch, unless the source turns out to be too far ahead.
func (m *machine) open() {
	m.stats.Phase, m.due = Opening, false
	if !m.measure() {
		m.openWatch()
	}
}

// openWatch opens a watch from the last revision.
func (m *machine) openWatch() {
	m.stats.Watches++
	m.do(effect{do: doOpen, from: m.stats.Revision})
}

// watch handles the answer to doOpen.
func (m *machine) watch(err error, now time.Time) {
	switch {
	case m.stats.Phase != Opening:
	case err != nil:
		m.broken(err)
	case m.why != 0: // a relist was requested meanwhile
		m.do(effect{do: doClose})
		m.later()
	case m.answeredByAnother():
		m.do(effect{do: doClose})
		m.broken(m.otherStorage())
	default:
		m.opened = now
		if !m.checkUntil() {
			m.watching()
		}
	}
}

// watching begins to read the watch that has been opened.
func (m *machine) watching() {
	m.stats.Phase = Watching
	m.following()
	m.askForUntil()
}

// following continues with an open watch. After an outage, a Progress tells the
// sink that it is over.
func (m *machine) following() {
	if m.outage {
		m.offer(Update{Kind: Progress, Revision: m.stats.Revision})
		return
	}
	m.do(effect{do: doPull})
}

// pulling reports whether the machine can take a batch now.
func (m *machine) pulling() bool { return m.stats.Phase == Watching && len(m.held) == 0 }

// batch handles the answer to doPull.
func (m *machine) batch(b backend.Batch, err error, now time.Time) {
	if err != nil {
		m.closeWatch(now)
		m.broken(err)
		return
	}
	n, lost := auditBatch(b, m.stats.Revision, m.contiguous)
	if lost != nil {
		if n > 0 {
			m.tell(b.Events[:n], b.Events[n-1].Revision, nil)
		}
		m.lost(lost, now)
		return
	}
	m.tell(b.Events, b.Through, b.State)
}

// tell offers the contents of a batch to the sink.
func (m *machine) tell(events []store.Event, through store.Revision, state *tree.View) {
	switch {
	case len(events) > 0:
		m.stats.Batches++
		m.stats.Events += uint64(len(events))
		m.shared = m.shared || state != nil
		m.offer(Update{Kind: Changes, Revision: through, Events: events, State: state})
	case through > m.stats.Revision:
		m.stats.Batches++
		m.offer(Update{Kind: Progress, Revision: through})
	default:
		return // nothing yet: the source will notify
	}
	m.stats.Revision, m.resumes = through, 0
}

// lost closes a watch that skipped or repeated revisions.
func (m *machine) lost(lost *LostError, now time.Time) {
	if lost.Reason == Skipped {
		m.stats.Skipped++
	} else {
		m.stats.Repeated++
	}
	m.closeWatch(now)
	m.listBecause(lost.Reason, lost)
}

// listBecause makes the next attempt a list, since err says that the watch cannot be resumed.
func (m *machine) listBecause(why Reason, err error) {
	m.report(err)
	m.need(why)
	m.later()
}

// closeWatch closes the watch. It resets the backoff if the watch was open for
// HealthyAfter.
func (m *machine) closeWatch(now time.Time) {
	if now.Sub(m.opened) >= m.backoff.HealthyAfter {
		m.stats.Attempts, m.resumes = 0, 0
	}
	m.do(effect{do: doClose})
}

// broken handles a watch that was refused or has ended, with err.
func (m *machine) broken(err error) {
	closed := m.stats.Phase == Watching && errors.Is(err, store.ErrClosed)
	switch {
	case errors.Is(err, ErrOtherStorage):
		m.listBecause(Restored, err)
	case errors.Is(err, store.ErrExpired):
		m.listBecause(Expired, err)
	case errors.Is(err, store.ErrFuture):
		m.listBecause(Future, err)
	case closed: // normal for servers; an outage only if it cannot be resumed
		m.report(err)
		m.later()
	default:
		m.failed(err)
	}
}

// failed handles an error that means that the source is unreachable.
func (m *machine) failed(err error) {
	m.report(err)
	m.stats.Failures++
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

// later schedules the next attempt after the backoff's delay. Every reconnect
// goes through here, so none can spin.
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

// wake handles the end of the delay.
func (m *machine) wake() {
	if m.stats.Phase == Waiting && !m.due {
		m.attempt()
	}
}

// relist handles a request for a list. A list in progress satisfies it.
func (m *machine) relist(why Reason, now time.Time) {
	switch m.stats.Phase {
	case Watching:
		m.need(why)
		m.closeWatch(now)
		m.later()
	case Opening:
		m.need(why)
	case Waiting:
		m.need(why)
		if m.due { // it waits only for the sink, so the backoff has not delayed it yet
			m.later()
		}
	}
}

// end gives up, once the sink has accepted a final Unavailable.
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

// accepted handles the sink's answer Accepted to doOffer.
func (m *machine) accepted() {
	m.held = slices.Delete(m.held, 0, 1) // Delete also clears the reference
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

// full handles the sink's answer Full to doOffer: the machine waits for room.
func (m *machine) full() { m.stats.Full = true }

// room handles the sink's notice that it can accept an update again.
func (m *machine) room() {
	if m.stats.Full {
		m.stats.Full = false
		m.do(effect{do: doOffer})
	}
}

// gone handles the sink's answer Gone to doOffer: it has stopped.
func (m *machine) gone() {
	m.stats.Phase, m.held = Ended, nil
	m.do(effect{do: doStop})
}
