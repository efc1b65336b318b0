package load

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/scenario"
)

// reads returns the first reader of a group, over an engine with one object, and the revision of that.
func reads(t *testing.T, spec scenario.Reader) (*reader, engine.Revision) {
	t.Helper()
	spec.Rate = 1
	r := newStartedRun(t, &scenario.Scenario{Objects: scenario.Objects{Count: 1}, Readers: []scenario.Reader{spec}})
	at := create(t, r, 0)
	rd := newReader(r, r.callersOf("readers", "readers-1"), &r.plan.Readers[0], 0, 0)
	rd.readAndJudge(t)
	return rd, at
}

func (rd *reader) readAndJudge(t *testing.T) {
	t.Helper()
	check, err := rd.readOne(t.Context())
	require.NoError(t, err)
	check()
}

// Each mode that a scenario can ask for is served as it is judged.
func TestReaders_FindNothingInAnEngineThatKeepsItsWord(t *testing.T) {
	for _, op := range []scenario.ReadOp{scenario.Get, scenario.List} {
		for _, mode := range []scenario.ReadMode{scenario.Latest, scenario.Cached, scenario.NotOlder, scenario.Exact} {
			rd, _ := reads(t, scenario.Reader{Op: op, Mode: mode})
			require.Equal(t, oneIf(op == scenario.List), rd.group.sample.Len())
			require.Empty(t, rd.run.judge().broken)
		}
	}
}

// An engine that serves reads from a state that is too old would pass for a fast one.
func TestReaders_FindAReadThatIsStale(t *testing.T) {
	for op, want := range map[scenario.ReadOp]string{
		scenario.List: "read-latest: readers-1: it is of revision 2, not from 3 to the newest",
		scenario.Get:  `read-latest: readers-1: it has "ns-0/obj-0" as of 2, which had been changed at 3`,
	} {
		rd, at := reads(t, scenario.Reader{Op: op})
		rd.run.ledger.Note(judge.Entry{Revision: at + 1, Key: "ns-0/obj-0"}) // a write that the engine does not know
		rd.readAndJudge(t)
		require.Equal(t, []string{want}, rd.run.judge().broken)
	}
}

// An object that a list lacks is not lost to a watch, so that no watcher misses it.
func TestReaders_FindAListThatLacksAnObject(t *testing.T) {
	rd, at := reads(t, scenario.Reader{Mode: scenario.Cached})
	rd.run.ledger.Note(judge.Entry{Revision: at, Key: "ns-0/obj-1"}) // an object that the engine does not have
	require.Equal(t, []string{"read-state: readers-1: it has 1 objects as the state at revision 2, when there were 2 for it"}, rd.run.judge().broken)
}

func TestReaders_JudgeWhatTheyGet(t *testing.T) {
	latest := judge.Read[content.Item]{Name: "r", Mode: judge.ReadLatest, Oldest: 5}
	exact := judge.Read[content.Item]{Name: "r", Mode: judge.ReadExact, Oldest: 5, Newest: 5}
	cached := judge.Read[content.Item]{Name: "r", Mode: judge.ReadCached}
	a := func(rev engine.Revision) *engine.Object[content.Item] {
		return &engine.Object[content.Item]{Key: "a", Revision: rev}
	}
	wrote, removed := judge.Entry{Key: "a", Revision: 5}, judge.Entry{Key: "a", Revision: 5, Deleted: true}
	for _, c := range []struct {
		read  judge.Read[content.Item]
		known judge.Entry
		got   *engine.Object[content.Item]
		want  string
	}{
		{latest, wrote, a(5), ""},
		{latest, wrote, a(7), ""},
		{latest, wrote, nil, ""}, // it may have been deleted since
		{latest, wrote, a(4), `read-latest: r: it has "a" as of 4, which had been changed at 5`},
		{latest, removed, nil, ""},
		{latest, removed, a(4), `read-latest: r: it has "a" as of 4, which had been changed at 5`},
		{latest, judge.Entry{Key: "b", Revision: 5}, a(4), ""},
		{latest, judge.Entry{Key: "a", Revision: 5, Emitted: true}, a(4), ""},
		{cached, wrote, a(4), ""},
		{exact, wrote, a(5), ""},
		{exact, wrote, a(6), `read-exact: r: "a" as of 6 was not there at revision 5`},
		{exact, wrote, nil, `read-exact: r: it has not found "a", which was there at 5`},
		{exact, removed, nil, ""},
		{latest, wrote, &engine.Object[content.Item]{Key: "b", Revision: 5}, `read-state: r: it was to read "a", and has read "b"`},
	} {
		err := (&asked{Read: c.read, known: c.known}).judgeGet("a", c.got)
		if c.want == "" {
			require.NoError(t, err, "%+v", c)
		} else {
			require.EqualError(t, err, c.want)
		}
	}
}

// wrongLists returns what a load finds whose engine lacks one object of each node from the first on, when
// each reader in turn lists the objects of the next node, rounds times.
func wrongLists(t *testing.T, nodes, first, readers, rounds int) []string {
	t.Helper()
	r := newStartedRun(t, &scenario.Scenario{
		Objects: scenario.Objects{Count: 1, Fields: map[string]int{"node": nodes}},
		Readers: []scenario.Reader{{Rate: 1, Count: readers, Fields: "node={node}", Mode: scenario.Cached}},
	})
	at := create(t, r, 0)
	for i := first; i < nodes; i++ {
		node := scenario.Value("node", i)
		r.ledger.Note(judge.Entry{Revision: at, Key: "ns-0/lost-on-" + node, Fields: fields.Set{"node": node}})
	}
	for i := range readers {
		rd := newReader(r, r.callersOf("readers", "readers-1"), &r.plan.Readers[0], i, i)
		for range rounds {
			rd.readAndJudge(t)
		}
	}
	return r.judge().broken
}

func TestReaders_FindAWrongListOfALateSelection(t *testing.T) {
	require.Len(t, wrongLists(t, 15, 14, 1, 15), 1)
	require.Len(t, wrongLists(t, 400, 200, 1, 400), 1, "of more selections than are compared")
	require.Empty(t, wrongLists(t, 400, 400, 1, 400))
}

// Two readers that share two selections have one each.
func TestReaders_FindAWrongListOfAnyReader(t *testing.T) {
	require.Len(t, wrongLists(t, 2, 1, 2, 3), 1)
}

// A list that storage does not serve fails if storage fails: it asks for the newest revision.
func TestReaders_OfModeLatestMeetFaultsOfAllCalls(t *testing.T) {
	for _, kind := range []scenario.FaultKind{scenario.FaultFail, scenario.FaultStick} {
		rep := inBubble(t, brief(t, &scenario.Scenario{
			Objects: scenario.Objects{Count: 10},
			Readers: []scenario.Reader{{Rate: 50}},
			Faults:  []scenario.Fault{{Kind: kind}},
		}))
		require.NotZero(t, rep.Faults[0].Struck, kind)
		require.Equal(t, kind == scenario.FaultFail, rep.Metrics["read-errors"] > 0, kind)
	}
}
