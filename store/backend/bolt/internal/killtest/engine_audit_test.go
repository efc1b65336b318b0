package killtest_test

import (
	"context"
	"fmt"
	"io"
	"maps"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/killtest"
)

// audit has what the file said after each life of the process, and judges by that what
// the writers were told, and what the consumers were given and have saved.
type audit struct {
	dir     string
	history *judge.History[thing]
	// compacted is the revision to which the file was compacted after the last life.
	compacted engine.Revision
	// saved is what each consumer has saved.
	saved map[string]engine.Checkpoint
	// acked are the writes that were acknowledged in this life, and tried how many writes
	// have begun of which nothing else is known.
	acked map[engine.Revision]write
	tried map[write]int
	tally
}

// write is one, with the value as text, "" for a deletion.
type write struct{ key, text string }

// tally counts what was judged.
type tally struct {
	acknowledged, unacknowledged, refused int
	watches, events                       int
	// inherited are events of changes from before the life, again those that were handled
	// and come again, and expired the watches whose checkpoint was too old.
	inherited, again, expired int
}

func (t tally) String() string {
	return fmt.Sprintf("%d writes acknowledged, %d refused, %d found that were neither; %d watches with %d events, %d of them from lives before, %d handled again, %d watches from too far back",
		t.acknowledged, t.refused, t.unacknowledged, t.watches, t.events, t.inherited, t.again, t.expired)
}

func newAudit(dir string) *audit {
	return &audit{
		dir: dir, history: judge.NewHistory(func(a, b thing) bool { return a == b }),
		saved: map[string]engine.Checkpoint{}, acked: map[engine.Revision]write{}, tried: map[write]int{},
	}
}

// take reads what a life says of its writes.
func (a *audit) take(out io.Reader) error { return killtest.ReadLines(out, a.line) }

func (a *audit) line(l killtest.Line) error {
	w := write{l.Key, l.Text}
	switch l.What {
	case "try":
		a.tried[w]++
		return nil
	case "put":
		if l.Revision <= a.history.Newest() {
			return judge.Failed(judge.Acknowledged, "", "revision %d is used twice: the file was at %d", l.Revision, a.history.Newest())
		}
		a.acked[l.Revision] = w
	case "not":
		a.refused++
	}
	a.tried[w]--
	return nil
}

// life judges a life that has ended. If it was drained, the consumers have read everything.
func (a *audit) life(n int, drained bool) error {
	before := a.history.Newest()
	if err := a.readFile(); err != nil {
		return err
	}
	for _, c := range consumers() {
		if err := a.consumer(&c, n, before, drained); err != nil {
			return err
		}
		if err := c.shorten(a.dir); err != nil {
			return err
		}
	}
	return nil
}

// readFile reads what was written in a life.
func (a *audit) readFile() error {
	f, b, err := openThings(a.dir)
	if err != nil {
		return err
	}
	defer f.Close()
	ctx := context.Background()
	newest, err := b.Revision(ctx)
	if err != nil {
		return err
	}
	events, err := killtest.Events(ctx, b, a.history.Newest(), newest)
	if err != nil {
		return err
	}
	for _, ev := range events {
		if err := a.change(ev); err != nil {
			return err
		}
	}
	for rev, w := range a.acked {
		return judge.Failed(judge.Acknowledged, "", "lost: %v at revision %d, the file is at %d", w, rev, newest)
	}
	clear(a.tried)
	if a.compacted, err = b.Compacted(ctx); err != nil {
		return err
	}
	return a.state(ctx, b)
}

// change adds a change to the history, if it was written.
func (a *audit) change(ev store.Event) error {
	w, v := write{key: ev.Key()}, store.As[engine.Object[thing]](ev.Object).Value
	if ev.Type == store.Deleted {
		a.history.MarkReceived(a.history.Delete(w.key))
	} else {
		w.text = v.String()
		a.history.MarkReceived(a.history.Put(w.key, v))
	}
	told, acked := a.acked[ev.Revision]
	switch {
	case acked && told != w:
		return judge.Failed(judge.Acknowledged, "", "%v is at revision %d, and was told to be %v", w, ev.Revision, told)
	case acked:
		delete(a.acked, ev.Revision)
		a.acknowledged++
	case a.tried[w] > 0:
		a.tried[w]--
		a.unacknowledged++
	default:
		return judge.Failed(judge.Genuine, "", "%v is at revision %d, and was not written", w, ev.Revision)
	}
	return nil
}

// state compares the state with what all changes add up to.
func (a *audit) state(ctx context.Context, b *bolt.Backend) error {
	list, err := b.List(ctx, backend.ListOptions{})
	if err != nil {
		return err
	}
	found := judge.State{}
	for _, o := range list.Items {
		found[o.Key] = o.Revision
	}
	if want := a.history.State(list.Revision, func(thing) bool { return true }); !maps.Equal(found, want) {
		return judge.Failed(judge.ReadState, "", "the state is %v, and should be %v", found, want)
	}
	return nil
}
