package window_test

import (
	"fmt"
	"testing"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/tree"
	"github.com/watchmill/watchmill/store/window"
)

// filled returns a window with n events over 1,000 keys, and its tree.
func filled(n int) (*window.Window, *tree.Tree) {
	w, objects := window.New(window.Limits{}, nil), tree.New()
	for i := range n {
		put(w, objects, fmt.Sprintf("key/%03d", i%1000))
	}
	return w, objects
}

func BenchmarkAppend(b *testing.B) {
	w, objects := filled(10_000)
	o := objects.Get("key/000")
	rev := w.View().Revision()
	b.ReportAllocs()
	for b.Loop() {
		rev++
		w.Append(store.Event{Type: store.Modified, Revision: rev, Object: o, Prev: o}, start)
		w.Trim(start)
	}
}

// One event read at the end, as a watcher that keeps up does.
func BenchmarkReadNewest(b *testing.B) {
	w, _ := filled(100_000)
	v := w.View()
	b.ReportAllocs()
	for b.Loop() {
		if events, _ := v.Read(v.Next() - 1); len(events) != 1 {
			b.Fatal(len(events))
		}
	}
}

// A watcher far behind reads all; the time is per event.
func BenchmarkReadAll(b *testing.B) {
	w, _ := filled(100_000)
	v := w.View()
	at := v.First()
	var sum store.Revision
	b.ReportAllocs()
	for n := 0; n < b.N; {
		events, _ := v.Read(at)
		for _, ev := range events {
			sum += ev.Revision
		}
		n += len(events)
		if at += window.Seq(len(events)); at == v.Next() {
			at = v.First()
		}
	}
}

func BenchmarkSeek(b *testing.B) {
	w, _ := filled(100_000)
	v := w.View()
	rev := store.Revision(0)
	for b.Loop() {
		rev = (rev + 7919) % 100_000
		if _, err := v.Seek(rev); err != nil {
			b.Fatal(err)
		}
	}
}

// States of the past: as many events before the newest, over 1,000 keys, and of
// those that were read before.
func BenchmarkSnapshotStateAt(b *testing.B) {
	w, objects := filled(100_000)
	for _, back := range []store.Revision{1, 256, 1000, 10_000} {
		b.Run(fmt.Sprint("back=", back), func(b *testing.B) {
			s := snapshot(w, objects)
			b.ReportAllocs()
			for n := store.Revision(0); b.Loop(); n++ {
				if _, err := s.StateAt(b.Context(), s.Revision-back-n%7); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
