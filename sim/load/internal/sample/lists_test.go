package sample

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/scenario"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// list has the sample keep the nth list of a load, if it wants it.
func (s *Lists) list(sel scenario.Selection, n int) {
	if s.Keeps(sel) {
		s.Keep(sel, judge.Listing[content.Item]{Limit: n}) // by which it is known again
	}
}

// A load may last for hours: what is kept of it is bounded, and not of its beginning alone.
func TestLists_HasListsOfAllTimes(t *testing.T) {
	s := New(1)
	const all = 100_000
	for i := range all {
		s.list(scenario.Selection{}, i)
	}
	kept := s.selections[0].lists
	require.Less(t, len(kept), maxKept)
	require.GreaterOrEqual(t, len(kept), maxKept/2)
	require.Equal(t, len(kept), s.size)
	require.Zero(t, kept[0].Limit)
	for i := 1; i < len(kept); i++ {
		require.Equal(t, s.stride, kept[i].Limit-kept[i-1].Limit)
	}
	require.GreaterOrEqual(t, kept[len(kept)-1].Limit, all-s.stride)
}

// Otherwise a load that lists two selections by turns would have one of them compared only at first.
func TestLists_HasAsManyListsOfEachSelection(t *testing.T) {
	s := New(1)
	sels := []scenario.Selection{{Prefix: "a"}, {Labels: "a"}, {Fields: "a"}, {Key: "a"}}
	for i := range 100_000 {
		s.list(sels[i%len(sels)], i)
	}
	require.Len(t, s.selections, len(sels))
	for _, of := range s.selections {
		require.Len(t, of.lists, s.size/len(sels))
	}
}

func TestLists_HasSelectionsOfAllTimes(t *testing.T) {
	s := New(1)
	const all = 1000
	late, n := 0, 0
	for i := range all {
		for range 100 {
			s.list(scenario.Selection{Prefix: strconv.Itoa(i)}, n)
			n++
		}
	}
	require.Len(t, s.selections, maxKeptSelections)
	for _, of := range s.selections {
		require.NotEmpty(t, of.lists)
		at, err := strconv.Atoi(of.Prefix)
		require.NoError(t, err)
		require.Equal(t, at*100, of.lists[0].Limit, "from its first list on")
		if at >= all/2 {
			late++
		}
	}
	require.Greater(t, late, maxKeptSelections/4)
	require.Less(t, s.size, maxKept)
}

func TestLists_DropsAListOfASelectionThatItNoLongerHas(t *testing.T) {
	s := New(1)
	var begun []scenario.Selection
	for i := range 100 {
		if sel := (scenario.Selection{Prefix: strconv.Itoa(i)}); s.Keeps(sel) {
			begun = append(begun, sel)
		}
	}
	require.Greater(t, len(begun), maxKeptSelections)
	for _, sel := range begun {
		s.Keep(sel, judge.Listing[content.Item]{})
	}
	require.Equal(t, maxKeptSelections, s.size)
}

func TestLists_AllHasEachSelectionOnce(t *testing.T) {
	s := New(1)
	require.Zero(t, s.Len())
	for i := range 6 {
		s.list(scenario.Selection{Prefix: strconv.Itoa(i % 2)}, i)
	}
	require.Equal(t, 6, s.Len())
	n := map[string]int{}
	for sel, lists := range s.All() {
		n[sel.Prefix] += len(lists)
	}
	require.Equal(t, map[string]int{"0": 3, "1": 3}, n)
	for range s.All() {
		break
	}
}
