package reflector

import (
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// With ListWhenBehind, an attempt to resume reads the newest revision first:
//
//	list newest, one object ──▶ distance ──▶ at most ListWhenBehind: watch from the last revision
//	                                    └──▶ more: list, because Behind, and watch from there
//
// The watch right after a list is not behind, so it is opened at once.

// measure reads the newest revision if it decides between a watch and a list. It reports
// whether it does.
func (m *machine) measure() bool {
	if m.listWhenBehind == 0 || m.resumes == 0 {
		return false
	}
	m.measuring = true
	m.do(effect{do: doList, list: backend.ListOptions{Prefix: m.prefix, Limit: 1}})
	return true
}

// measured handles the answer to measure.
func (m *machine) measured(page *backend.List, err error) {
	m.measuring = false
	switch {
	case err != nil:
		m.broken(err)
	case m.why != 0: // a relist was requested meanwhile
		m.later()
	case m.answeredByAnother():
		m.broken(m.otherStorage())
	case m.isBehind(page.Revision):
		m.need(Behind)
		m.list()
	default:
		m.openWatch()
	}
}

// isBehind reports whether the last revision is so far behind newest that a list is to
// replace the changes in between. A source that went back is not ahead.
func (m *machine) isBehind(newest store.Revision) bool {
	return newest > m.stats.Revision && newest-m.stats.Revision > m.listWhenBehind
}

// answeredByAnother reports whether the last answer is of another storage than the last
// update. An answer that does not tell may be of the same.
func (m *machine) answeredByAnother() bool { return m.answeredBy != "" && m.answeredBy != m.storeID }

// otherStorage returns the error of an answer from another storage than that of the last
// revision.
func (m *machine) otherStorage() error {
	return &OtherStorageError{Revision: m.stats.Revision, Before: m.storeID, Now: m.answeredBy}
}
