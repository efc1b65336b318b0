package dispatcher

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
)

// TestStalledScenarios runs testdata/stalled. Its commands are:
//
//	stall <name> at=<position> [policy=…] [since=…]
//	move <name> to=<position>
//	recover <name>
//	window first=<position>                  prints who has lost events
//	cohorts reach=<events>                   prints who is served together
//	overdue policy=… since=…                 prints who has been stalled for so long
//	all                                      prints everybody
func TestStalledScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/stalled", func(t *testing.T, path string) {
		s, entries := newStalled[string](), map[string]*stall[string]{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "stall":
				name := d.CmdArgs[0].Key
				entries[name] = s.add(name, seqArg(t, d, "at"), policyArg(t, d), clockArg(t, d, "since"))
			case "move":
				s.move(entries[d.CmdArgs[0].Key], seqArg(t, d, "to"))
			case "recover":
				s.remove(entries[d.CmdArgs[0].Key])
			case "window":
				return names(s.expired(seqArg(t, d, "first")))
			case "cohorts":
				return cohortNames(s, uint64(seqArg(t, d, "reach")))
			case "overdue":
				return names(s.overdue(policyArg(t, d), clockArg(t, d, "since")))
			case "all":
				return names(s.expired(math.MaxUint64))
			default:
				t.Fatalf("unknown command %q", d.Cmd)
			}
			return ""
		})
	})
}

func seqArg(t *testing.T, d *datadriven.TestData, name string) store.Seq {
	var n uint64
	d.ScanArgs(t, name, &n)
	return store.Seq(n)
}

func policyArg(t *testing.T, d *datadriven.TestData) watcher.Policy {
	var name string
	if !d.MaybeScanArgs(t, "policy", &name) {
		return watcher.Park
	}
	p, err := watcher.ParsePolicy(name)
	require.NoError(t, err)
	return p
}

func names(members []*stall[string]) string {
	if len(members) == 0 {
		return "nobody\n"
	}
	var out strings.Builder
	for _, m := range members {
		fmt.Fprintf(&out, "%s at %d (%s)\n", m.watcher, m.position, m.policy)
	}
	return out.String()
}

func cohortNames(s *stalled[string], reach uint64) string {
	var out strings.Builder
	for from, members := range s.cohorts(reach) {
		fmt.Fprintf(&out, "from %d:", from)
		for _, m := range members {
			fmt.Fprintf(&out, " %s@%d", m.watcher, m.position)
		}
		fmt.Fprintln(&out)
	}
	return out.String()
}

func TestStalledEmpty(t *testing.T) {
	s := newStalled[string]()
	_, ok := s.lowest()
	require.False(t, ok)
	require.Empty(t, s.expired(math.MaxUint64))
	require.Empty(t, s.overdue(watcher.Terminate, start))
	require.Empty(t, cohortNames(s, 10))
}

func TestStalledCohortsStopWhenToldTo(t *testing.T) {
	s := newStalled[int]()
	for n := range 10 {
		s.add(n, store.Seq(n/2), watcher.Park, start)
	}
	var seen []store.Seq
	for from := range s.cohorts(1) {
		if seen = append(seen, from); from == 2 {
			break
		}
	}
	require.Equal(t, []store.Seq{0, 1, 2}, seen)
}

func TestStalledPositionsAtTheEndOfTheirRange(t *testing.T) {
	s := newStalled[string]()
	s.add("first", 0, watcher.Park, start)
	s.add("last", math.MaxUint64, watcher.Park, start)
	require.Equal(t, "from 0: first@0\nfrom 18446744073709551615: last@18446744073709551615\n", cohortNames(s, math.MaxUint64))
	require.Len(t, s.expired(math.MaxUint64), 1)
}

// The set against a list that is searched.
func TestStalledAgreesWithAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newStalled[int]()
		var list []*stall[int] // in order of adding
		position := rapid.Map(rapid.Uint64Range(0, 40), func(n uint64) store.Seq { return store.Seq(n) })
		policy := rapid.SampledFrom([]watcher.Policy{watcher.Park, watcher.Terminate, watcher.Conflate})
		member := func(t *rapid.T) *stall[int] {
			if len(list) == 0 {
				t.Skip("nobody is stalled")
			}
			return rapid.SampledFrom(list).Draw(t, "member")
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				since := start.Add(time.Duration(rapid.IntRange(0, 9).Draw(t, "since")) * time.Second)
				list = append(list, s.add(len(list), position.Draw(t, "position"), policy.Draw(t, "policy"), since))
			},
			"move": func(t *rapid.T) {
				m, to := member(t), position.Draw(t, "to")
				want := max(m.position, to)
				s.move(m, to)
				require.Equal(t, want, m.position)
			},
			"remove": func(t *rapid.T) {
				m := member(t)
				s.remove(m)
				s.remove(m)
				at := m.position
				s.move(m, at+1)
				require.Equal(t, at, m.position, "who is gone does not move")
				list = slices.DeleteFunc(list, func(other *stall[int]) bool { return other == m })
			},
			"": func(t *rapid.T) { requireSame(t, list, s, position.Draw(t, "first")) },
		})
	})
}

func requireSame(t *rapid.T, list []*stall[int], s *stalled[int], first store.Seq) {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b *stall[int]) int { return cmp.Compare(a.position, b.position) })
	require.Equal(t, len(list), s.len())
	if lowest, ok := s.lowest(); ok {
		require.Equal(t, list[0].position, lowest)
	}
	where := func(keep func(*stall[int]) bool) []*stall[int] {
		return slices.DeleteFunc(slices.Clone(list), func(m *stall[int]) bool { return !keep(m) })
	}
	requireEqual(t, where(func(m *stall[int]) bool { return m.position < first }), s.expired(first))
	terminate := func(m *stall[int]) bool { return m.policy == watcher.Terminate }
	require.Equal(t, len(where(terminate)), s.count(watcher.Terminate))
	until := start.Add(5 * time.Second)
	requireEqual(t, where(func(m *stall[int]) bool { return terminate(m) && !m.since.After(until) }), s.overdue(watcher.Terminate, until))
	requireCohorts(t, list, s, uint64(first))
}

// requireCohorts demands that the cohorts are all members in order, each within
// reach of the first of its cohort and out of reach of the first of the one before.
func requireCohorts(t *rapid.T, list []*stall[int], s *stalled[int], reach uint64) {
	var all []*stall[int]
	reach = max(reach, 1)
	previous := store.Seq(0)
	for from, members := range s.cohorts(reach) {
		require.Equal(t, from, members[0].position)
		require.Less(t, uint64(members[len(members)-1].position-from), reach)
		require.True(t, len(all) == 0 || uint64(from-previous) >= reach)
		previous = from
		all = append(all, members...)
	}
	requireEqual(t, list, all)
}

func requireEqual(t *rapid.T, want, got []*stall[int]) {
	require.True(t, slices.Equal(want, got), "want %v, got %v", want, got)
}

func BenchmarkStalledMove(b *testing.B) {
	s := newStalled[int]()
	members := make([]*stall[int], 10_000)
	for n := range members {
		members[n] = s.add(n, store.Seq(n), watcher.Park, start)
	}
	next := 0
	b.ReportAllocs()
	for b.Loop() {
		m := members[next%len(members)]
		s.move(m, m.position+100)
		next++
	}
}
