package window_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/tree"
	"github.com/watchmill/watchmill/store/window"
)

// written returns a window that starts at revision 10 and has three events.
func written() (*window.Window, *tree.Tree) {
	objects := tree.New()
	w := window.New(window.Limits{MaxEvents: 2}, nil)
	w.Reset(10)
	for i, key := range []string{"a", "b", "c"} {
		o := &store.Object{Key: key, Revision: store.Revision(11 + i)}
		ev := store.Event{Type: store.Added, Revision: o.Revision, Object: o}
		w.Append(ev, time.Unix(0, 0))
		objects.Put(o)
	}
	return w, objects
}

// A watch seeks the position after the revision that it knows, then reads.
func ExampleWindow() {
	w, _ := written()
	view := w.View()
	at, err := view.Seek(11)
	if err != nil {
		fmt.Println(err)
		return
	}
	for at < view.Next() {
		events, ok := view.Read(at)
		if !ok {
			break // trimmed in the meantime, if the view is a newer one
		}
		for _, ev := range events {
			fmt.Println(ev)
		}
		at += window.Seq(len(events))
	}
	// Output:
	// ADDED b@12
	// ADDED c@13
}

// What the limits do not keep is dropped, and said to be expired.
func ExampleWindow_Trim() {
	w, _ := written()
	fmt.Println("dropped", w.Trim(time.Unix(1, 0)))
	_, err := w.View().Seek(10)
	fmt.Println(errors.Is(err, store.ErrExpired), err)
	// Output:
	// dropped 1
	// true too old revision: 10 (oldest served is 11): list again and watch from the list's revision
}

func ExampleSnapshot_StateAt() {
	w, objects := written()
	now := window.Snapshot{Revision: 13, Base: objects.View(), Window: w.View()}
	state, err := now.StateAt(context.Background(), 12)
	if err != nil {
		fmt.Println(err)
		return
	}
	for o := range state.All("", "") {
		fmt.Println(o.Key)
	}
	// Output:
	// a
	// b
}

func ExampleLimits_Validate() {
	err := window.Limits{MinEvents: 10_000, MaxEvents: 1000}.Validate("Window")
	fmt.Println(err)
	// Output: invalid configuration: Window.MinEvents is 10000, more than MaxEvents, 1000; raise that
}
