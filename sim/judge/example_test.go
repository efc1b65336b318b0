package judge_test

import (
	"fmt"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/judge"
)

// A watch from revision 1 that leaves out a change breaks an invariant, which the failure names.
func ExampleHistory_Judge() {
	history := judge.NewHistory(func(a, b string) bool { return a == b })
	var events []engine.Event[string]
	for _, key := range []string{"a", "b", "c"} {
		rev := history.Put(key, "new")
		history.MarkReceived(rev)
		events = append(events, engine.Event[string]{
			Type: engine.Added, Revision: rev,
			Object: &engine.Object[string]{Key: key, Value: "new", Revision: rev, Created: rev},
		})
	}
	watch := judge.Record[string]{
		Name: "w", Selects: func(string) bool { return true }, Options: engine.WatchOptions{From: judge.First},
		Events: events, Drained: true,
	}
	fmt.Println(history.Judge(&watch))
	watch.Events = append(events[:1:1], events[2])
	fmt.Println(history.Judge(&watch))
	// Output:
	// <nil>
	// reliable: w, event 1: ADDED c@4: before it: revision 3 is missing
}
