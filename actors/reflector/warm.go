package reflector

import (
	"errors"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// A warm start begins with the oldest state that the source has, in place of the
// newest, so that the sink gets the history since:
//
//	list newest, one object ──▶ until          what the sink must reach
//	list at 1 ──▶ expired, oldest is N
//	list at N ──▶ Replace{Revision: N, Until}
//	watch from N
//	list newest, one object ──▶ before until: the source has gone back, relist
//	Changes ... until ──▶ from here on as after any start
//
// The newest revision is read a second time once the watch is open, and again for
// each watch that replaces it before until is reached. A source that goes back later
// than that ends its watch.
//
// If the past state cannot be listed, for whatever reason and several times if the reason
// may pass, the start is an ordinary one, from the newest state. With WarmFrom the first
// list is of all objects, not of one: if the source has not moved on from WarmFrom, that
// list is the start.
type warmth struct {
	stage warmStage
	// until is the revision that the source had at the start; zero if unknown.
	until store.Revision
	// tries counts the lists of a past state that failed.
	tries int
}

// warmStage is what the list under way is for.
type warmStage uint8

const (
	warmNot   warmStage = iota // the newest state
	warmProbe                  // the newest revision
	warmPast                   // the oldest state
	warmCheck                  // the newest revision again, when the watch is open
)

// maxWarmTries is how many lists of a past state may fail and be tried again. After one
// more failure the newest state is listed instead.
const maxWarmTries = 3

// warmUp changes the first list into the probe.
func (m *machine) warmUp() {
	m.warmth.stage, m.warmth.until = warmNot, 0
	if m.warm && m.why == Started && m.warmth.tries <= maxWarmTries {
		m.warmth.stage = warmProbe
		if m.warmFrom == 0 {
			m.asked.Limit, m.asked.State = 1, false
		}
	}
}

// warming handles the answer to a list of a warm start. It reports false if the
// answer is a page of the state that the sink is to get.
func (m *machine) warming(page *backend.List, err error, now time.Time) bool {
	switch m.warmth.stage {
	case warmProbe:
		if err != nil {
			return false
		}
		if page.Revision <= m.warmFrom {
			m.warmth.stage = warmNot
			return false
		}
		m.warmth.until = page.Revision
		m.listAt(m.firstPast())
		return true
	case warmPast:
		return m.pastIsGone(err)
	case warmCheck:
		m.checked(page, err, now)
		return true
	}
	return false
}

// firstPast returns the revision of the first past state that an attempt lists.
func (m *machine) firstPast() store.Revision { return max(m.warmFrom, 1) }

// listAt lists the state at a revision.
func (m *machine) listAt(rev store.Revision) {
	m.warmth.stage = warmPast
	m.beginList(rev)
	m.do(effect{do: doList, list: m.asked})
}

// pastIsGone reports whether err says that a past state cannot be listed. If so it
// lists the oldest state that there is, or after several tries the newest.
func (m *machine) pastIsGone(err error) bool {
	if !errors.Is(err, store.ErrExpired) && !errors.Is(err, store.ErrFuture) && !errors.Is(err, store.ErrUnsupported) {
		return false
	}
	if m.asked.Revision != m.firstPast() { // otherwise the source only tells where the past begins
		m.warmth.tries++
	}
	m.whole = m.whole || m.asked.Continue != "" // the pages would expire again
	var expired *store.ExpiredError
	if errors.As(err, &expired) && expired.Oldest > m.asked.Revision && m.warmth.tries <= maxWarmTries {
		m.listAt(expired.Oldest)
		return true
	}
	m.warmth.tries = maxWarmTries + 1
	m.list()
	return true
}

// pastFailed counts a list of a past state that failed otherwise: a source may refuse it
// for ever, with any error.
func (m *machine) pastFailed() {
	if m.warmth.stage == warmPast {
		m.warmth.tries++
	}
}

// checkUntil reads the newest revision again if the sink has not reached until: a
// source that has gone back meanwhile would never reach it. It reports whether it
// has asked.
func (m *machine) checkUntil() bool {
	if m.stats.Revision >= m.warmth.until {
		return false
	}
	m.warmth.stage = warmCheck
	m.do(effect{do: doList, list: backend.ListOptions{Prefix: m.prefix, Limit: 1}})
	return true
}

// checked handles the answer to checkUntil.
func (m *machine) checked(page *backend.List, err error, now time.Time) {
	m.warmth.stage = warmNot
	switch {
	case err == nil && page.Revision < m.warmth.until:
		err = &store.FutureError{Requested: m.warmth.until, Current: page.Revision}
		fallthrough
	case err != nil:
		m.closeWatch(now)
		m.broken(err)
	case m.why != 0: // a relist was requested meanwhile
		m.closeWatch(now)
		m.later()
	default:
		m.watching()
	}
}

// askForUntil requests progress if the sink waits for until and the last revision may have
// no event under the prefix, so that no event would say that it is reached.
func (m *machine) askForUntil() {
	if m.stats.Revision < m.warmth.until && !m.contiguous {
		m.do(effect{do: doProgress})
	}
}
