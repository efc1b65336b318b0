package window_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/internal/storetest"
	"github.com/watchmill/watchmill/store/tree"
	"github.com/watchmill/watchmill/store/window"
)

// TestWindow_Scenarios runs testdata. Times are durations since the
// scenario began; an object has as many megabytes as its scenario says, else
// none. The commands are:
//
//	new [chunk= events= mb= age= min=]      a window, and an empty tree beside it
//	reset floor=R
//	append [at=T] [mb=N]                    lines like "added a@11", applied to the tree
//	advance to=R
//	relist after=R through=R [at=T]         the objects of the new state; prints the difference
//	trim at=T                               prints how many events went
//	compact to=R                            likewise
//	seek                                    revisions; prints the position of each
//	read                                    positions; prints the events that can be read there
//	position                                positions; prints the revision of each
//	state                                   revisions; prints the state at each
//	since                                   numbers of events; prints the position of each
//	held                                    prints the megabytes that only the window keeps
//
// All but the last six print the window.
func TestWindow_Scenarios(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &windowScenario{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if out, ok := s.ask(t, d); ok {
				return out
			}
			return s.change(t, d) + s.summary()
		})
	})
}

type windowScenario struct {
	window *window.Window
	tree   *tree.Tree
}

// megabyte is a thousand times what a few events take by themselves.
const megabyte = 1 << 20

// change runs a command that changes the window.
func (s *windowScenario) change(t *testing.T, d *datadriven.TestData) (out string) {
	at := time.Unix(0, 0).Add(durationArg(t, d, "at"))
	switch d.Cmd {
	case "new":
		limits := window.Limits{
			ChunkSize: intArg(t, d, "chunk"), MaxEvents: intArg(t, d, "events"), MinEvents: intArg(t, d, "min"),
			MaxBytes: int64(intArg(t, d, "mb")) * megabyte, MinAge: durationArg(t, d, "age"),
		}
		require.NoError(t, limits.Validate("limits"))
		s.tree = tree.New()
		s.window = window.New(limits, func(o *store.Object) int {
			mb, _ := strconv.Atoi(storetest.ValueOf(o))
			return mb * megabyte
		})
	case "reset":
		s.window.Reset(storetest.RevisionArg(t, d, "floor"))
	case "append":
		for line := range strings.SplitSeq(d.Input, "\n") {
			ev := parseEvent(t, line)
			store.As[storetest.Thing](ev.Object).Value = strconv.Itoa(intArg(t, d, "mb"))
			ev.Prev = s.tree.Get(ev.Key())
			s.window.Append(ev, at)
			apply(s.tree, ev)
		}
	case "advance":
		s.window.Advance(storetest.RevisionArg(t, d, "to"))
	case "relist":
		is := tree.New()
		storetest.Fill(t, is, d.Input)
		after, through := storetest.RevisionArg(t, d, "after"), storetest.RevisionArg(t, d, "through")
		events := tree.Diff(storetest.Things, s.tree.View(), is.View(), after, through, at)
		s.window.AppendDiff(events, after, through, at)
		s.tree = is
		return storetest.PrintEvents(events) + "\n"
	case "trim":
		return fmt.Sprintln("dropped", s.window.Trim(at))
	case "compact":
		return fmt.Sprintln("dropped", s.window.Compact(storetest.RevisionArg(t, d, "to")))
	default:
		t.Fatalf("%s: unknown command %q", d.Pos, d.Cmd)
	}
	return ""
}

// ask runs a command that only reads, once for each number in its input.
func (s *windowScenario) ask(t *testing.T, d *datadriven.TestData) (out string, ok bool) {
	answers := map[string]func(v window.View, n uint64) string{
		"seek": answerSeek, "read": answerRead, "state": s.answerState,
		"position": func(v window.View, n uint64) string { return v.RevisionAt(window.Seq(n)).String() },
		"since":    func(v window.View, n uint64) string { return fmt.Sprint("position ", v.Since(int(n))) },
	}
	if d.Cmd == "held" {
		return fmt.Sprintln(s.window.View().Bytes()/megabyte, "MB"), true
	}
	answer, ok := answers[d.Cmd]
	if !ok {
		return "", false
	}
	var b strings.Builder
	for word := range strings.FieldsSeq(d.Input) {
		fmt.Fprintf(&b, "%s: %s\n", word, answer(s.window.View(), uint64(storetest.ParseRevision(t, word))))
	}
	return b.String(), true
}

func (s *windowScenario) summary() string {
	v := s.window.View()
	return fmt.Sprintf("floor %v, positions %d to %d (%d events), revision %v",
		v.Floor(), v.First(), v.Next(), v.Len(), v.Revision())
}

func answerSeek(v window.View, n uint64) string {
	at, err := v.Seek(store.Revision(n))
	if err != nil {
		return briefly(err)
	}
	return fmt.Sprint("position ", at)
}

func answerRead(v window.View, n uint64) string {
	events, ok := v.Read(window.Seq(n))
	if !ok {
		return "too late"
	}
	return strings.ReplaceAll(strings.TrimSpace(storetest.PrintEvents(events)), "\n", ", ")
}

func (s *windowScenario) answerState(v window.View, n uint64) string {
	now := window.Snapshot{Revision: v.Revision(), Base: s.tree.View(), Window: v}
	state, err := now.StateAt(context.Background(), store.Revision(n))
	if err != nil {
		return briefly(err)
	}
	return "[" + storetest.KeysAndRevisions(state) + "]"
}

// briefly says what kind of error it is, without the advice to people.
func briefly(err error) string {
	if expired := (*store.ExpiredError)(nil); errors.As(err, &expired) {
		return fmt.Sprint("expired, oldest ", expired.Oldest)
	}
	if future := (*store.FutureError)(nil); errors.As(err, &future) {
		return fmt.Sprint("future, current ", future.Current)
	}
	return err.Error()
}

// parseEvent reads "added a@11" and the like.
func parseEvent(t *testing.T, line string) store.Event {
	types := map[string]store.EventType{
		"added": store.Added, "modified": store.Modified, "deleted": store.Deleted, "emitted": store.Emitted,
	}
	name, object, _ := strings.Cut(line, " ")
	require.Contains(t, types, name)
	o := storetest.ParseWritten(t, object)
	return store.Event{Type: types[name], Revision: o.Revision, Object: o}
}

// apply makes the event's change to the tree.
func apply(objects *tree.Tree, ev store.Event) {
	switch ev.Type {
	case store.Added, store.Modified:
		objects.Put(ev.Object)
	case store.Deleted:
		objects.Delete(ev.Key())
	}
}

func intArg(t *testing.T, d *datadriven.TestData, name string) (n int) {
	d.MaybeScanArgs(t, name, &n)
	return n
}

func durationArg(t *testing.T, d *datadriven.TestData, name string) time.Duration {
	var s string
	if !d.MaybeScanArgs(t, name, &s) {
		return 0
	}
	if n, err := strconv.Atoi(s); err == nil {
		return time.Duration(n) * time.Second
	}
	span, err := time.ParseDuration(s)
	require.NoError(t, err)
	return span
}
