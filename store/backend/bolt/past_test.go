package bolt_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
)

// pager lists past states in pages.
type pager struct {
	*fixture
	scans int // of the log
	next  map[store.Revision]string
	read  map[store.Revision]int
}

// newPager returns a pager of a file with states of 1 to 40 objects, at the revisions from 2 on, which
// are in the file alone.
func newPager(t *testing.T) *pager {
	p := &pager{next: map[store.Revision]string{}, read: map[store.Revision]int{}}
	p.fixture = newFixture(t, func(f *fixture) {
		f.wrap = onScan(func(v journal.View, after, through uint64, fn scanned) error {
			p.scans++
			return v.Scan(after, through, fn)
		})
	})
	for i := range 40 {
		p.put(fmt.Sprintf("item-%02d", i), "x")
	}
	p.reopen(0)
	p.scans = 0
	return p
}

// page reads the next two objects of the state at a revision, and returns how often that has read the log.
func (p *pager) page(at store.Revision) (scans int) {
	p.Helper()
	before := p.scans
	opts := backend.ListOptions{Revision: at, Limit: 2}
	if token := p.next[at]; token != "" {
		opts = backend.ListOptions{Continue: token, Limit: 2}
	}
	l, err := p.List(p.ctx, opts)
	require.NoError(p, err)
	for _, o := range l.Items {
		require.Equal(p, fmt.Sprintf("item-%02d", p.read[at]), o.Key)
		p.read[at]++
	}
	require.Equal(p, int(at)-1-p.read[at], l.Remaining)
	p.next[at] = l.Continue
	return p.scans - before
}

func TestPast_SomeStatesCanBeListedByTurns(t *testing.T) {
	p := newPager(t)
	states := []store.Revision{31, 21, 26, 11}
	for _, at := range states {
		require.Equal(t, 1, p.page(at))
	}
	for range 4 {
		for _, at := range states {
			require.Zero(t, p.page(at))
		}
		slices.Reverse(states)
	}
	require.Equal(t, 10, p.read[11], "all")
}

// The index of the state that was not listed for the longest goes.
func TestPast_HasFewIndexes(t *testing.T) {
	p := newPager(t)
	for _, at := range []store.Revision{31, 32, 33, 34} {
		p.page(at)
	}
	require.Zero(t, p.page(31))
	require.Equal(t, 1, p.page(35))
	for _, at := range []store.Revision{31, 33, 34, 35} {
		require.Zero(t, p.page(at))
	}
	require.Equal(t, 1, p.page(32))
}

func TestPast_ForgetsItsIndexes(t *testing.T) {
	p := newPager(t)
	p.page(31)
	p.clock.Advance(30 * time.Second)
	p.page(21)
	p.clock.Advance(30 * time.Second)
	require.Equal(t, 1, p.page(31))
	p.clock.Advance(time.Minute)
	require.Equal(t, 1, p.page(21))
	require.Equal(t, 1, p.page(31))
}

// preceded is a journal that calls first, once, just before it is read.
type preceded struct {
	journal.Journal
	first func()
}

func (p *preceded) Read(ctx context.Context, name string, fn func(journal.View) error) error {
	if first := p.first; first != nil {
		p.first = nil
		first()
	}
	return p.Journal.Read(ctx, name, fn)
}

// A list whose state is compacted before it is read expires, and does not show another state.
func TestPast_ExpiresIfItIsCompactedMeanwhile(t *testing.T) {
	p := &preceded{}
	f := newFixture(t, func(f *fixture) {
		f.wrap = func(j journal.Journal) journal.Journal { p.Journal = j; return p }
	})
	f.put("a", "1")
	f.put("b", "1")
	last := f.put("a", "2").Revision
	f.reopen(0)
	f.emptyWindow()
	p.first = func() {
		require.NoError(t, f.Compact(f.ctx, last))
		f.file.Settle()
	}
	_, err := f.List(f.ctx, backend.ListOptions{Revision: last - 1})
	require.ErrorIs(t, err, store.ErrExpired)
}
