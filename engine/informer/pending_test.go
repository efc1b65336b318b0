package informer

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/cache"
)

// What is pending for a handler that blocks for ever is bounded by the objects that
// exist, however many came and went.
func TestMergedChanges_AreBoundedByLiveObjects(t *testing.T) {
	transform := &transformer{cfg: &settings{schema: engine.Config[string]{}.Schema()}}
	object := func(key string, rev store.Revision) *store.Object {
		return store.Header(&Object[string]{Key: key, Revision: rev})
	}
	merged := newMergedChanges(transform)
	lives := object("lives", 1)
	merged.fold([]notification{added(lives, Change)})
	for i := range store.Revision(10_000) {
		o := object(fmt.Sprint(i), i+2)
		merged.fold([]notification{added(o, Change)})
		merged.fold([]notification{{Type: store.Deleted, Cause: Change, Old: o, Object: transform.cfg.schema.Gone(o, o.Revision, o.Written)}})
		require.LessOrEqual(t, len(merged.order), minCompaction+4)
	}
	require.Equal(t, 1, merged.len())
	require.Equal(t, []notification{added(lives, Change)}, merged.notifications())
}

// scenario is what a scenario acts on: a store that changes, and what is pending
// for one handler.
type scenario struct {
	pending pending
	objects *cache.ThreadSafeStore[*store.Object]
}

// TestPending_Scenarios runs the scenarios in testdata/pending. Their verbs:
//
//	handler policy=… buffer=…   a handler that starts with the state: keys at revisions
//	change                      one batch: "a@5" puts, "-a@6" deletes, "a@7 created=7"
//	                            begins another object
//	take                        the handler takes its next delivery and finishes it
//	hold, finish                the same in two steps
//	resync                      its resync is due
//	trickle changes=…           that many batches of one change of "a", and how many states are kept
//	rest                        the handler takes all its deliveries of "a"
//
// All print the result.
func TestPending_Scenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/pending", func(t *testing.T, path string) {
		var s scenario
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			return s.run(t, d)
		})
	})
}

func (s *scenario) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "handler":
		return s.start(t, d)
	case "change":
		return s.change(d.Input)
	case "take":
		return s.take() + s.finish()
	case "hold":
		return s.take()
	case "finish":
		return s.finish()
	case "resync":
		s.pending.requestResync()
		return s.where()
	case "trickle":
		return s.trickle(t, d)
	case "rest":
		return s.rest(t)
	}
	d.Fatalf(t, "unknown verb %q", d.Cmd)
	return ""
}

func (s *scenario) start(t *testing.T, d *datadriven.TestData) string {
	var policy string
	var buffer int
	d.ScanArgs(t, "policy", &policy)
	d.ScanArgs(t, "buffer", &buffer)
	*s = scenario{}
	s.objects, _ = cache.NewThreadSafeStore[*store.Object](nil)
	s.pending.buffer = buffer
	s.pending.transform = &transformer{cfg: &settings{schema: engine.Config[string]{}.Schema()}}
	for _, p := range []Policy{Merge, Resnapshot, Block} {
		if p.String() == policy {
			s.pending.policy = p
		}
	}
	for word := range strings.FieldsSeq(d.Input) {
		s.put(word)
	}
	s.pending.begin(s.state(), Replay)
	return s.where()
}

// state returns the state of the store.
func (s *scenario) state() *state {
	view := s.objects.View()
	return &state{view: view, revision: view.LastRevision()}
}

// put changes the store, and returns the notifications of the change.
func (s *scenario) put(text string) []notification {
	word, created, _ := strings.Cut(text, " created=")
	name, digits, _ := strings.Cut(strings.TrimPrefix(word, "-"), "@")
	rev, _ := strconv.ParseUint(digits, 10, 64)
	old, _ := s.objects.Get(name)
	if strings.HasPrefix(word, "-") {
		s.objects.Delete(name, store.Revision(rev))
		return []notification{{Type: store.Deleted, Cause: Change, Old: old, Object: s.pending.transform.cfg.schema.Gone(old, store.Revision(rev), old.Written)}}
	}
	now := store.Header(&Object[string]{Key: name, Revision: store.Revision(rev), Created: store.Revision(rev)})
	if old != nil {
		now.Created = old.Created
	}
	if n, err := strconv.ParseUint(created, 10, 64); err == nil {
		now.Created = store.Revision(n)
	}
	_ = s.objects.Update(name, now, now.Revision)
	return s.pending.transform.appendTransition(nil, pair{old, now}, Change)
}

func (s *scenario) change(input string) string {
	var b batch
	for line := range strings.Lines(input) {
		b.notifications = append(b.notifications, s.put(strings.TrimSpace(line))...)
	}
	b.after = s.state()
	lag, slow := s.pending.offer(&b)
	if slow {
		return fmt.Sprintf("slow: %d behind\n%s", lag, s.where())
	}
	return s.where()
}

func (s *scenario) trickle(t *testing.T, d *datadriven.TestData) string {
	var changes int
	d.ScanArgs(t, "changes", &changes)
	for range changes {
		s.change(fmt.Sprintf("a@%d", s.state().revision+1))
	}
	states := map[*state]bool{}
	for _, b := range s.pending.batches {
		states[b.after] = true
	}
	return fmt.Sprintf("states: %d\n%s", len(states), s.where())
}

func (s *scenario) rest(t *testing.T) string {
	var changes, deliveries int
	var last notification
	for {
		next, ok := s.pending.take()
		if !ok {
			return fmt.Sprintf("%d changes in %d deliveries\n%v\n%s", changes, deliveries, last, s.finish())
		}
		deliveries++
		for i := range next.n {
			n := next.at(i)
			require.Equal(t, n.Object.Revision, n.Old.Revision+1, "no change is missing")
			changes, last = changes+1, n
		}
		require.Same(t, last.Object, s.pending.known.get("a"), "the state after the delivery")
	}
}

func (s *scenario) take() string {
	next, ok := s.pending.take()
	if !ok {
		return "nothing\n"
	}
	var out strings.Builder
	for i := range next.n {
		n := next.at(i)
		fmt.Fprint(&out, n)
		if n.Type == store.Modified {
			fmt.Fprintf(&out, " (was @%d)", n.Old.Revision)
		}
		out.WriteByte('\n')
	}
	if next.start {
		out.WriteString("that was the start\n")
	}
	return out.String()
}

func (s *scenario) finish() string {
	s.pending.left.Store(0)
	if s.pending.released() {
		return "the source goes on\n" + s.where()
	}
	return s.where()
}

// where says how far behind the handler is.
func (s *scenario) where() string {
	text := fmt.Sprintf("ahead: %d", s.pending.lag())
	if s.pending.holds() {
		text += ", holds the source"
	}
	return text + "\n"
}

// A handler that is behind copies what is joined for it once. The batches that it shares with
// others stay as they are.
func TestPending_JoinsBatchesAtLittleCost(t *testing.T) {
	batches := make([]*batch, DefaultBuffer)
	for i := range batches {
		batches[i] = &batch{notifications: make([]notification, 1, 2), after: &state{revision: store.Revision(i)}}
	}
	allocated := testing.AllocsPerRun(1, func() {
		p := &pending{buffer: DefaultBuffer, known: &state{}}
		for _, b := range batches {
			p.offer(b)
		}
	})
	require.Less(t, allocated, 1000.0)
	for i, b := range batches {
		require.Len(t, b.notifications, 1)
		require.EqualValues(t, i, b.after.revision)
	}
}
