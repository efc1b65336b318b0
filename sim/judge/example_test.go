package judge_test

import (
	"fmt"
	"slices"
	"time"

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

// A read that shows an object with another time than it was written at breaks an invariant, if that time is known.
func ExampleHistory_Date() {
	history := judge.NewHistory(func(a, b string) bool { return a == b })
	rev := history.Put("a", "new")
	history.Date(time.Unix(10, 0), time.Time{})
	shown := engine.Object[string]{Key: "a", Value: "new", Revision: rev, Created: rev, Written: time.Unix(11, 0)}
	read := judge.Read[string]{Name: "read", Mode: judge.ReadLatest, Oldest: rev, Newest: rev}
	fmt.Println(judge.Broken(history.JudgeGet(read, "a", &shown)))
	shown.Written = time.Unix(10, 0)
	fmt.Println(history.JudgeGet(read, "a", &shown))
	// Output:
	// read-latest
	// <nil>
}

// A watch that selects what begins with an a has one of two changes to deliver.
func ExampleHistory_Lacks() {
	history := judge.NewHistory(func(a, b string) bool { return a == b })
	for _, value := range []string{"apple", "pear"} {
		history.MarkReceived(history.Put(value, value))
	}
	watch := judge.Record[string]{
		Name: "w", Selects: func(value string) bool { return value[0] == 'a' }, Options: engine.WatchOptions{From: judge.First},
	}
	fmt.Println(history.Lacks(&watch, history.Newest()))
	// Output: 1
}

// Where a load has too many events to keep, a trail counts them: this consumer has received
// two of three.
func ExampleTrail() {
	var writes judge.Ledger
	for rev, key := range map[engine.Revision]string{2: "a", 3: "b", 4: "c"} {
		writes.Note(judge.Entry{Revision: rev, Key: key})
	}
	trail := judge.Trail[string]{Name: "w"}
	trail.Begin(1)
	for _, rev := range []engine.Revision{2, 4} {
		trail.Receive(&engine.Event[string]{Type: engine.Added, Revision: rev})
	}
	trail.End()
	everything := judge.Selection{}
	expected := judge.Expect(slices.Values([]judge.Selection{everything}), &writes)
	fmt.Println("to see:", expected.Revisions(everything))
	fmt.Println("lost:", trail.Judge(expected, everything).Lost)
	// Output:
	// to see: [2 3 4]
	// lost: 1
}

// A reader asks for a list that is not older than revision 4, and is given one of revision 3.
func ExampleListing() {
	list := judge.Listing[string]{Read: judge.Read[string]{Name: "reader", Mode: judge.ReadNotOlder, Oldest: 4}}
	fmt.Println(list.Page(&engine.List[string]{Revision: 3}))
	// Output:
	// read-not-older: reader: it is of revision 3, not from 4 to the newest
}
