package reflector

import (
	"errors"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// A warm start begins with the oldest state that the source has, in place of the
// newest, so that the sink gets the history since:
//
//	list newest, one object ──▶ until          what the sink must reach
//	list at 1 ──▶ expired, oldest is N
//	list at N ──▶ Replace{Revision: N, Until}
//	watch from N ──▶ Changes ... until ──▶ from here on as after any start
//
// A source that does not let it be so is listed as it is now.
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
)

// maxWarmTries is how often history may be given up faster than it is listed.
const maxWarmTries = 3

// warmUp changes the first list into the probe.
func (m *machine) warmUp() {
	m.warmth.stage, m.warmth.until = warmNot, 0
	if m.warm && m.why == Started && m.warmth.tries <= maxWarmTries {
		m.warmth.stage = warmProbe
		m.asked.Limit, m.asked.State = 1, false
	}
}

// warming takes the answer to a list of a warm start, and reports whether it has
// done all about it.
func (m *machine) warming(page *backend.List, err error) bool {
	switch m.warmth.stage {
	case warmProbe:
		if err != nil || page == nil {
			return false
		}
		m.warmth.until = page.Revision
		m.listAt(1)
		return true
	case warmPast:
		return m.pastIsGone(err)
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

// hurry asks how far the source is, if the sink waits for a revision that may have
// no event of the watch.
func (m *machine) hurry() {
	if m.stats.Revision < m.warmth.until && !m.contiguous {
		m.do(effect{do: doAsk})
	}
}
