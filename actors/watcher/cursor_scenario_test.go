package watcher_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/window"
)

// TestCursor_Scenarios runs testdata/cursor: watches of one selector over one
// window, without actors, so that what happens between two steps of the
// dispatcher can be told. The commands are:
//
//	world [labels=…] [events=N] [chunk=N]
//	write [times=N] [rounds]       one to a line, as in testdata/convert; with trim and round
//	                               after each
//	trim                           the window lets go of what is beyond its limit
//	round                          the dispatcher evaluates and publishes
//	half-round                     it fails after it has evaluated
//	watch NAME [from=N] [pending=N] [state] [bookmarks] [buffer=N] [policy=…]
//	read NAME [batches=N]          what there is for the watch, a batch to a line
//	bookmark NAME                  one falls due
//	lag NAME
func TestCursor_Scenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/cursor", func(t *testing.T, path string) {
		r := &cursorRunner{watches: map[string]*watcher.Watch{}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			r.t = t
			if out := r.run(d); out != "" {
				return out
			}
			return "ok\n"
		})
	})
}

type cursorRunner struct {
	t       *testing.T
	world   *world
	watches map[string]*watcher.Watch
}

func (r *cursorRunner) run(d *datadriven.TestData) string {
	switch d.Cmd {
	case "world":
		r.start(d)
	case "write":
		return r.write(d)
	case "trim":
		r.world.trim()
	case "round":
		r.world.round()
	case "half-round":
		r.world.halfRound()
	case "watch":
		r.watch(d)
	case "read":
		return r.read(d)
	case "bookmark":
		r.watches[d.CmdArgs[0].Key].Member().RequestBookmark()
	case "lag":
		w := r.watches[d.CmdArgs[0].Key]
		return fmt.Sprintf("%d behind, would resume from %d\n", w.Lag(), w.Revision())
	default:
		d.Fatalf(r.t, "unknown command %q", d.Cmd)
	}
	return ""
}

func (r *cursorRunner) start(d *datadriven.TestData) {
	var labels string
	var limits window.Limits
	d.MaybeScanArgs(r.t, "labels", &labels)
	d.MaybeScanArgs(r.t, "events", &limits.MaxEvents)
	d.MaybeScanArgs(r.t, "chunk", &limits.ChunkSize)
	filter, err := store.NewFilter(columns, store.FilterOptions{Labels: labels})
	require.NoError(r.t, err)
	r.world = newWorld(r.t, filter, limits)
}

func (r *cursorRunner) write(d *datadriven.TestData) string {
	times := 1
	d.MaybeScanArgs(r.t, "times", &times)
	first, last := store.Revision(0), store.Revision(0)
	for range times {
		for line := range strings.Lines(d.Input) {
			last = r.world.write(line).Revision
			if d.HasArg("rounds") {
				r.world.trim()
				r.world.round()
			}
			if first == 0 {
				first = last
			}
		}
	}
	return fmt.Sprintf("%d to %d\n", first, last)
}

func (r *cursorRunner) watch(d *datadriven.TestData) {
	var o watcher.Options
	start, snap := r.world.now(), r.world.feed.Load()
	for _, arg := range d.CmdArgs[1:] {
		var n uint64
		if len(arg.Vals) > 0 {
			_, _ = fmt.Sscan(arg.Vals[0], &n)
		}
		switch arg.Key {
		case "from":
			at, err := snap.Window.Seek(store.Revision(n))
			require.NoError(r.t, err)
			start.Next, start.After = at, store.Revision(n)
		case "pending":
			start.Pending = store.Revision(n)
		case "state":
			start.State = snap.State()
		case "bookmarks":
			o.Bookmarks, start.InitialEnd = true, start.State != nil
		case "buffer":
			o.Buffer = int(n)
		case "policy":
			require.NoError(r.t, o.Policy.UnmarshalText([]byte(arg.Vals[0])))
		default:
			d.Fatalf(r.t, "unknown argument %q", arg.Key)
		}
	}
	r.watches[d.CmdArgs[0].Key] = r.world.watch(o, start)
}

func (r *cursorRunner) read(d *datadriven.TestData) string {
	most := 1 << 30
	d.MaybeScanArgs(r.t, "batches", &most)
	var out strings.Builder
	for w := r.watches[d.CmdArgs[0].Key]; most > 0; most-- {
		events, err := w.Next(r.t.Context())
		if errors.Is(err, errIdle) {
			break
		}
		if err != nil {
			fmt.Fprintf(&out, "ended: %v\n", err)
			break
		}
		for i, ev := range events {
			fmt.Fprintf(&out, "%s%v", map[bool]string{true: ", "}[i > 0], ev)
		}
		fmt.Fprintln(&out)
	}
	if out.Len() == 0 {
		return "nothing\n"
	}
	return out.String()
}
