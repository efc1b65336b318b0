package reflector

import (
	"errors"
	"slices"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// maxGrow bounds the number of objects preallocated for a list, since the
// source's Remaining may be wrong.
const maxGrow = 1 << 20

// list begins a list with its first page.
func (m *machine) list() {
	m.stats.Phase, m.due = Listing, false
	m.beginList(0)
	m.warmUp()
	m.do(effect{do: doList, list: m.asked})
}

// beginList counts a list of the state at a revision, zero for the newest, and decides
// about its first page.
func (m *machine) beginList(rev store.Revision) {
	m.stats.Lists++
	m.listed = backend.List{}
	m.asked = backend.ListOptions{Prefix: m.prefix, Limit: m.pageSize, Revision: rev, State: m.state}
	if m.whole {
		m.asked.Limit = 0
	}
}

// listing reports whether a page has been asked for.
func (m *machine) listing() bool {
	return m.stats.Phase == Listing || m.warmth.stage == warmCheck || m.measuring
}

// page handles the answer to doList: a page, or else an error.
func (m *machine) page(page *backend.List, err error, now time.Time) {
	switch {
	case m.measuring:
		m.measured(page, err)
		return
	case !m.listing() || m.warming(page, err, now):
		return
	}
	if err == nil {
		err = m.checkPage(page)
	}
	if err != nil {
		m.listFailed(err)
		return
	}
	m.keep(page)
}

// checkPage returns what is wrong with a page. The first one decides the revision and the storage
// that the others must be of.
func (m *machine) checkPage(page *backend.List) error {
	if m.asked.Continue == "" {
		m.listed.Revision, m.listedOf = page.Revision, m.answeredBy
	}
	if err := auditPage(page, m.asked, m.listed.Revision); err != nil {
		return err
	}
	if m.answeredBy != m.listedOf && m.answeredBy != "" {
		return replacedMeanwhile(m.listed.Revision, page)
	}
	return nil
}

// listFailed handles the error of a page: it lists again without a limit, if that may help, once.
func (m *machine) listFailed(err error) {
	m.pastFailed()
	if !m.whole && pagingFailed(err, m.asked.Continue == "") {
		m.report(err)
		m.whole = true
		m.list()
		return
	}
	m.listed = backend.List{}
	m.failed(err)
}

// pagingFailed reports whether err is a failure of paging, so that a list without a
// limit may succeed immediately.
func pagingFailed(err error, first bool) bool {
	return errors.Is(err, ErrTornList) ||
		!first && (errors.Is(err, store.ErrExpired) || errors.Is(err, store.ErrInvalidContinue))
}

// keep appends a valid page and requests the next, if there is one.
func (m *machine) keep(page *backend.List) {
	m.stats.Pages++
	if m.asked.State && page.State != nil {
		m.listed.State = page.State
		m.complete()
		return
	}
	if m.listed.Items == nil { // clipped, because the spare capacity belongs to the source
		m.listed.Items = slices.Grow(slices.Clip(page.Items), min(max(page.Remaining, 0), maxGrow))
	} else {
		m.listed.Items = append(m.listed.Items, page.Items...)
	}
	if page.Continue != "" {
		m.asked.Continue, m.asked.State, m.asked.Revision = page.Continue, false, 0 // the token has the revision
		m.do(effect{do: doList, list: m.asked})
		return
	}
	m.complete()
}

// complete offers the list to the sink and watches from its revision.
func (m *machine) complete() {
	list, why := m.listed, m.why
	m.listed = backend.List{}
	if list.Revision < m.stats.Revision && !m.mayGoBack() {
		m.wentBack(list.Revision)
		return
	}
	m.stats.Revision, m.storeID = list.Revision, m.listedOf
	m.why, m.whole, m.resumes, m.shared = 0, false, 0, list.State != nil
	m.stats.Phase, m.due = Waiting, true
	m.offer(Update{Kind: Replace, Reason: why, Revision: list.Revision, StoreID: m.storeID, Until: m.warmth.until, Objects: list.Items, State: list.State})
}

// mayGoBack reports whether a list that is older than the last update is accepted. A source
// with an identity changes it when it goes back; if it has not, one of its replicas lags.
func (m *machine) mayGoBack() bool {
	return m.listedOf != m.storeID || m.why.mayGoBack() && (m.why != Future || m.storeID == "")
}

// wentBack refuses a list that is older than the last update. A replica that
// lags will have caught up by the next one; if that is older too, the source
// itself has gone back and the list is accepted.
func (m *machine) wentBack(listed store.Revision) {
	m.stats.Repeated++
	m.why = 0
	m.need(Repeated)
	m.failed(&WentBackError{Last: m.stats.Revision, Listed: listed})
}
