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
// The second look comes after the watch is open, and after each that replaces it
// before until: a source that goes back after that ends the watch.
//
// A source that does not let it be so is listed as it is now. So is one that is no
// further than WarmFrom, if that is given: then the first list is of all objects.
type warmth struct {
	stage warmStage
	// until is the revision that the source had at the start; zero if unknown.
	until store.Revision
	// tries counts the lists of a past state that was gone when they came.
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

// maxWarmTries is how often history may be given up faster than it is listed.
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

// warming takes the answer to a list of a warm start, and reports whether it has
// done all about it.
func (m *machine) warming(page *backend.List, err error, now time.Time) bool {
	switch m.warmth.stage {
	case warmProbe:
		if err != nil || page == nil {
			return false
		}
		if page.Revision <= m.warmFrom {
			m.warmth.stage = warmNot
			return false
		}
		m.warmth.until = page.Revision
		m.listAt(max(m.warmFrom, 1))
		return true
	case warmPast:
		return m.pastIsGone(err)
	case warmCheck:
		m.checked(page, err, now)
		return true
	}
	return false
}

// listAt lists the state at a revision.
func (m *machine) listAt(rev store.Revision) {
	m.warmth.stage = warmPast
	m.stats.Lists++
	m.listed = backend.List{}
	m.asked = backend.ListOptions{Prefix: m.prefix, Limit: m.pageSize, Revision: rev, State: m.state}
	m.do(effect{do: doList, list: m.asked})
}

// pastIsGone goes on if a past state cannot be listed: with the oldest that there
// is, or else with the newest. Other errors are those of any list.
func (m *machine) pastIsGone(err error) bool {
	if !errors.Is(err, store.ErrExpired) && !errors.Is(err, store.ErrFuture) && !errors.Is(err, store.ErrUnsupported) {
		return false
	}
	m.warmth.tries++
	var expired *store.ExpiredError
	if errors.As(err, &expired) && expired.Oldest > m.asked.Revision && m.warmth.tries <= maxWarmTries {
		m.listAt(expired.Oldest)
		return true
	}
	m.warmth.tries = maxWarmTries + 1
	m.list()
	return true
}

// checkUntil asks where the source is if the sink waits for until, which a source
// that has gone back since does not reach. It reports whether it has asked.
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
	case err == nil && page != nil && page.Revision < m.warmth.until:
		err = &store.FutureError{Requested: m.warmth.until, Current: page.Revision}
		fallthrough
	case err != nil:
		m.hangUp(now)
		m.broken(err)
	case m.why != 0: // a relist was requested meanwhile
		m.hangUp(now)
		m.later()
	default:
		m.watching()
	}
}

// hurry asks how far the source is, if the sink waits for a revision that may have
// no event of the watch.
func (m *machine) hurry() {
	if m.stats.Revision < m.warmth.until && !m.contiguous {
		m.do(effect{do: doAsk})
	}
}
