package enginetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// Expect fails the test unless the wanted events come, in this order. Others may come in
// between. The events up to the last wanted one are then consumed; later ones stay for
// the next expectation.
func Expect[T any](t testing.TB, w *Watch[T], wants ...Want) {
	t.Helper()
	if !ready(t, w, wants) {
		return
	}
	found, through := w.find(wants)
	w.awaitUntil(t.Context(), func() bool {
		found, through = w.find(wants)
		return found == len(wants)
	})
	if found < len(wants) {
		t.Fatalf("enginetest: %s did not come%s\n%s",
			wants[found], ended(w), report(wants, w.pending))
	}
	w.pending = w.pending[through:]
}

// ExpectExactly fails the test unless the next events are the wanted ones, and no others
// come from writes before the call.
func ExpectExactly[T any](t testing.TB, w *Watch[T], wants ...Want) {
	t.Helper()
	if !ready(t, w, wants) {
		return
	}
	got := w.pending
	w.pending = nil
	if !equal(wants, got) {
		t.Fatalf("enginetest: the events are not those expected%s\n%s", ended(w), report(wants, got))
	}
}

// ExpectNothing fails the test if events come from writes before the call that no
// expectation has consumed.
func ExpectNothing[T any](t testing.TB, w *Watch[T]) {
	t.Helper()
	ExpectExactly(t, w)
}

// ExpectEnd fails the test unless the watch ends for a reason that matches target, by
// errors.Is. Events before the end are ignored.
func ExpectEnd[T any](t testing.TB, w *Watch[T], target error) {
	t.Helper()
	if !ready(t, w, nil) {
		return
	}
	w.awaitUntil(t.Context(), func() bool { return w.end != nil })
	w.pending = nil
	switch {
	case w.end == nil:
		t.Fatalf("enginetest: the watch has not ended, it is at revision %d; wanted its end: %v", w.Revision(), target)
	case !errors.Is(w.end, target):
		t.Fatalf("enginetest: the watch ended for another reason\n  got:    %v\n  wanted: %v", w.end, target)
	}
}

// ready checks the wants and receives the pending events. It reports false after it has
// failed the test.
func ready[T any](t testing.TB, w *Watch[T], wants []Want) bool {
	t.Helper()
	err := mistaken[T](wants)
	if err == nil {
		err = w.settle(t.Context())
	}
	if err != nil {
		t.Fatalf("enginetest: %v", err)
	}
	return err == nil
}

// find looks for wants among the pending events. It returns how many of them come, and
// how many events there are up to the last of those.
func (w *Watch[T]) find(wants []Want) (found, through int) {
	for i, ev := range w.pending {
		if found == len(wants) {
			break
		}
		if matches(wants[found], ev) {
			found, through = found+1, i+1
		}
	}
	return found, through
}

// ended returns the punctuation before a report; it says so if the watch has ended.
func ended[T any](w *Watch[T]) string {
	if w.end == nil {
		return ":"
	}
	return fmt.Sprintf(" (the watch has ended: %v):", w.end)
}

// indent puts text behind a margin.
func indent(text, margin string) string {
	return margin + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+margin)
}
