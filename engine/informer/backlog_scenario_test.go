package informer

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/watchmill/watchmill/store"
)

// story is the world of a backlog scenario: a store that changes, and one
// handler's backlog.
type story struct {
	backlog backlog[string]
	objects *store.ThreadSafeStore[*Object[string]]
	// held is what the handler has taken and not finished.
	held int
}

// TestBacklogScenarios runs the scenarios in testdata/backlog. Their verbs:
//
//	handler policy=… buffer=…   a handler that starts with the state: keys at revisions
//	change                      one batch: "a@5" puts, "-a@6" deletes, "a@7 created=7"
//	                            begins another object
//	take                        the handler takes its next job and finishes it
//	hold, finish                the same in two steps
//	resync                      its resync is due
//
// All print what came of it.
func TestBacklogScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/backlog", func(t *testing.T, path string) {
		var s story
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			return s.run(t, d)
		})
	})
}

func (s *story) run(t *testing.T, d *datadriven.TestData) string {
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
		s.backlog.requestResync()
		return s.where()
	}
	d.Fatalf(t, "unknown verb %q", d.Cmd)
	return ""
}

func (s *story) start(t *testing.T, d *datadriven.TestData) string {
	var policy string
	var buffer int
	d.ScanArgs(t, "policy", &policy)
	d.ScanArgs(t, "buffer", &buffer)
	*s = story{}
	s.objects, _ = store.NewThreadSafeStore[*Object[string]](nil)
	s.backlog.buffer = buffer
	s.backlog.same = func(a, b *Object[string]) bool { return a.Created == b.Created }
	for _, p := range []Policy{Conflate, Resnapshot, Block} {
		if p.String() == policy {
			s.backlog.policy = p
		}
	}
	for _, word := range strings.Fields(d.Input) {
		s.put(word)
	}
	s.backlog.begin(s.state(), Replay)
	return s.where()
}

// state is the store as it is.
func (s *story) state() *Snapshot[string] {
	view := s.objects.View()
	return &Snapshot[string]{view: view, revision: view.LastRevision()}
}

// put changes the store, and returns the change as handlers are told.
func (s *story) put(text string) []Notification[string] {
	word, created, _ := strings.Cut(text, " created=")
	name, digits, _ := strings.Cut(strings.TrimPrefix(word, "-"), "@")
	rev, _ := strconv.ParseUint(digits, 10, 64)
	old, _ := s.objects.Get(name)
	if strings.HasPrefix(word, "-") {
		s.objects.Delete(name, store.Revision(rev))
		return []Notification[string]{{Type: store.Deleted, Cause: Change, Old: old, Object: old.Gone(store.Revision(rev), old.Written)}}
	}
	now := &Object[string]{Key: name, Revision: store.Revision(rev), Created: store.Revision(rev)}
	if old != nil {
		now.Created = old.Created
	}
	if n, err := strconv.ParseUint(created, 10, 64); err == nil {
		now.Created = store.Revision(n)
	}
	_ = s.objects.Update(name, now, now.Revision)
	return transition(pair[string]{old, now}, Change, s.backlog.same)
}

func (s *story) change(input string) string {
	var b batch[string]
	for line := range strings.Lines(input) {
		b.notifications = append(b.notifications, s.put(strings.TrimSpace(line))...)
	}
	b.after = s.state()
	lag, slow := s.backlog.offer(&b)
	if slow {
		return fmt.Sprintf("slow: %d behind\n%s", lag, s.where())
	}
	return s.where()
}

func (s *story) take() string {
	next, ok := s.backlog.take()
	if !ok {
		return "nothing\n"
	}
	s.held = next.n
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

func (s *story) finish() string {
	s.held = 0
	s.backlog.left.Store(0)
	if s.backlog.released() {
		return "the source goes on\n" + s.where()
	}
	return s.where()
}

// where says how the backlog stands.
func (s *story) where() string {
	text := fmt.Sprintf("ahead: %d", s.backlog.lag())
	if s.backlog.holds() {
		text += ", holds the source"
	}
	return text + "\n"
}
