package judge_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
)

// TestHistory_JudgesRecords runs testdata/records. Values are words such as web.1; a selection matches
// the part before the dot. The commands are:
//
//	history                       lines: put <key> <value> | delete <key> | emit <key> <value>, one revision
//	                              each from 2 on; a line that ends in "unseen" was never shown as it happened;
//	                              together N: the last N are shown at one revision
//	watch [selects=web] [state] [from=R] [last=N] [started=R-R] [policy=…] [drained] [lagged] [lost=N] [bookmarks|no-bookmarks]
//	                              lines: added|modified|deleted|emitted <key>@R <value> [prev=<value>[@R]] [object=R] [created=R] [marks…]
//	                              bookmark @R [initial-end] (asked for by default) | claim R | end <reason> | cause <reason>
//	get <key> mode=… revisions=R-R [<value>@R]
//	list mode=… revisions=R-R at=R [selects=web]    lines: <key>@R <value> [created=R]
//	wrote added|deleted|emitted <key>@R <value>
//	figures living=N [slow=N] [deadlines=N] [panics=N] [expired=N]    lines: lives | <reason>
//	left actors=N timers=N
//
// Each prints the failure, or "fine".
func TestHistory_JudgesRecords(t *testing.T) {
	broken := map[judge.Invariant]bool{}
	datadriven.Walk(t, "testdata/records", func(t *testing.T, path string) {
		r := &fixture{t: t, history: judge.NewHistory(func(a, b string) bool { return a == b }), created: map[store.Revision]store.Revision{}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			r.d = d
			err := r.run()
			if err == nil {
				return "fine\n"
			}
			broken[judge.Broken(err)] = true
			return err.Error() + "\n"
		})
	})
	for _, i := range []judge.Invariant{
		judge.Ordered, judge.Unique, judge.Atomic, judge.Reliable, judge.Resumable, judge.Bookmarkable, judge.Filter,
		judge.PrevValue, judge.IsCreate, judge.Genuine, judge.InitialState, judge.Conserved, judge.Ends,
		judge.Acknowledged, judge.ReadLatest, judge.ReadCached, judge.ReadNotOlder, judge.ReadExact, judge.ReadState, judge.NothingLeft,
	} {
		require.True(t, broken[i], "no scenario breaks %s", i)
	}
}

// fixture is the state of a scenario.
type fixture struct {
	t       *testing.T
	d       *datadriven.TestData
	history *judge.History[string]
	// created is, by the revision of a change, the revision at which its object was created.
	created map[store.Revision]store.Revision
}

func (c *fixture) run() error {
	switch c.d.Cmd {
	case "history":
		c.write()
		return nil
	case "watch":
		return c.history.Judge(c.record())
	case "get":
		var o *engine.Object[string]
		key := c.d.CmdArgs[0].Key
		if last := c.d.CmdArgs[len(c.d.CmdArgs)-1].Key; strings.Contains(last, "@") {
			value, rev, _ := strings.Cut(last, "@")
			o = c.object(key+"@"+rev, value)
		}
		return c.history.JudgeGet(c.read(), key, o)
	case "list":
		var objects []*engine.Object[string]
		for _, line := range c.lines() {
			o := c.object(line[0], line[1])
			if len(line) > 2 {
				o.Created = c.revision(strings.TrimPrefix(line[2], "created="))
			}
			objects = append(objects, o)
		}
		return c.history.JudgeList(c.read(), c.selects(), c.number("at"), objects)
	case "wrote":
		args := c.d.CmdArgs
		return c.history.JudgeWrite(types[args[0].Key], c.object(args[1].Key, args[2].Key))
	case "figures":
		return judge.JudgeFigures(judge.Figures{
			Living: int64(c.number("living")), SlowConsumers: uint64(c.number("slow")), Deadlines: uint64(c.number("deadlines")),
			Panics: uint64(c.number("panics")), Expired: uint64(c.number("expired")),
		}, c.ends())
	case "left":
		return judge.JudgeLeft(int(c.number("actors")), int(c.number("timers")), nil)
	}
	c.d.Fatalf(c.t, "unknown command")
	return nil
}

func (c *fixture) lines() (lines [][]string) {
	for line := range strings.Lines(c.d.Input) {
		lines = append(lines, strings.Fields(line))
	}
	return lines
}

func (c *fixture) write() {
	for _, line := range c.lines() {
		if line[0] == "together" {
			c.history.Join(int(c.revision(line[1])))
			continue
		}
		var rev store.Revision
		_, was, there := c.history.Get(line[1])
		switch line[0] {
		case "put":
			rev = c.history.Put(line[1], line[2])
		case "emit":
			rev = c.history.Emit(line[1], line[2])
		case "delete":
			rev = c.history.Delete(line[1])
		}
		if c.created[rev] = rev; there && line[0] != "emit" {
			c.created[rev] = c.created[was]
		}
		if line[len(line)-1] != "unseen" {
			c.history.MarkReceived(rev)
		}
	}
}

func (c *fixture) revision(text string) store.Revision {
	n, err := strconv.Atoi(text)
	require.NoError(c.t, err, c.d.Pos)
	return store.Revision(n)
}

// number reads an argument; zero if it is missing.
func (c *fixture) number(name string) store.Revision {
	for _, arg := range c.d.CmdArgs {
		if arg.Key == name {
			return c.revision(arg.Vals[0])
		}
	}
	return 0
}

func (c *fixture) selects() func(string) bool {
	app := ""
	c.d.MaybeScanArgs(c.t, "selects", &app)
	return func(value string) bool { return app == "" || strings.HasPrefix(value, app+".") }
}

func (c *fixture) read() judge.Read[string] {
	r := judge.Read[string]{Name: "read"}
	var mode string
	c.d.ScanArgs(c.t, "mode", &mode)
	r.Mode = judge.Invariant(mode)
	r.Oldest, r.Newest = c.span("revisions")
	return r
}

// span reads two revisions.
func (c *fixture) span(name string) (from, through store.Revision) {
	var text string
	c.d.ScanArgs(c.t, name, &text)
	_, err := fmt.Sscanf(text, "%d-%d", &from, &through)
	require.NoError(c.t, err, c.d.Pos)
	return from, through
}

var ends = map[string]error{
	"stopped": engine.ErrStopped, "expired": engine.ErrExpired, "slow": engine.ErrSlowConsumer,
	"deadline": engine.ErrDeadline, "panic": engine.ErrHandlerPanic, "closed": engine.ErrEngineClosed,
	"unknown": fmt.Errorf("bad luck"), "lives": nil,
}

func (c *fixture) ends() (all []error) {
	for _, line := range c.lines() {
		all = append(all, ends[line[0]])
	}
	return all
}

// record reads the options of a watch and what its consumer received.
func (c *fixture) record() *judge.Record[string] {
	r := &judge.Record[string]{
		Name: "w", Selects: c.selects(), Earliest: judge.First, Latest: c.history.Newest(),
		Options: engine.WatchOptions{From: c.number("from"), Last: int(c.number("last")), InitialState: c.d.HasArg("state"), Bookmarks: c.d.HasArg("bookmarks")},
		Drained: c.d.HasArg("drained"), Lagged: c.d.HasArg("lagged"), Lost: uint64(c.number("lost")),
	}
	if policy := "park"; c.d.HasArg("policy") {
		c.d.ScanArgs(c.t, "policy", &policy)
		require.NoError(c.t, r.Options.Policy.UnmarshalText([]byte(policy)))
	}
	if c.d.HasArg("started") {
		r.Earliest, r.Latest = c.span("started")
	}
	for _, line := range c.lines() {
		switch line[0] {
		case "claim":
			r.Claims = append(r.Claims, judge.Claim{Events: len(r.Events), Revision: c.revision(line[1])})
		case "end":
			r.Ends = append(r.Ends, ends[line[1]])
		case "cause":
			r.Causes = append(r.Causes, ends[line[1]])
		default:
			ev := c.event(line)
			r.Events = append(r.Events, ev)
			r.Options.Bookmarks = r.Options.Bookmarks || ev.Type == store.Bookmark && !c.d.HasArg("no-bookmarks")
		}
	}
	return r
}

var types = map[string]store.EventType{
	"added": store.Added, "modified": store.Modified, "deleted": store.Deleted, "emitted": store.Emitted, "bookmark": store.Bookmark,
}

var marks = map[string]store.Marks{
	"initial": store.Initial, "initial-end": store.InitialEnd, "conflated": store.Conflated, "synthetic": store.Synthetic,
	"after-gap": store.AfterGap,
}

func (c *fixture) object(at, value string) *engine.Object[string] {
	key, rev, _ := strings.Cut(at, "@")
	o := &engine.Object[string]{Key: key, Value: value, Revision: c.revision(rev)}
	o.Created = c.created[o.Revision]
	return o
}

// previous reads the previous object of ev: <value>@R, or <value> for the latest one before
// ev.
func (c *fixture) previous(ev engine.Event[string], text string) *engine.Object[string] {
	value, rev, given := strings.Cut(text, "@")
	_, was, _ := c.history.At(ev.Object.Key, ev.Revision-1)
	if given {
		was = c.revision(rev)
	}
	return &engine.Object[string]{Key: ev.Object.Key, Value: value, Revision: was, Created: c.created[was]}
}

func (c *fixture) event(line []string) engine.Event[string] {
	ev := engine.Event[string]{Type: types[line[0]]}
	rest := line[2:]
	if _, rev, _ := strings.Cut(line[1], "@"); ev.Type == store.Bookmark {
		ev.Revision = c.revision(rev)
	} else {
		ev.Object, rest = c.object(line[1], line[2]), line[3:]
		ev.Revision = ev.Object.Revision
	}
	for _, word := range rest {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "prev":
			ev.Prev = c.previous(ev, value)
		case "object":
			ev.Object.Revision = c.revision(value)
		case "created":
			ev.Object.Created = c.revision(value)
		default:
			ev.Marks |= marks[name]
		}
	}
	return ev
}
