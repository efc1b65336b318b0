package engine_test

import (
	"testing"

	"pgregory.net/rapid"
)

// TestRows153To157_RandomHistories plays random histories and has package judge
// hold what is shown against versioned storage:
//
//   - 153: a watch's revisions increase, after an initial state in key order;
//   - 154: what it delivers is what its selection shows of all that happened,
//     unless it says otherwise;
//   - 155: nothing up to a bookmark comes after it, everything before;
//   - 156: a list and a watch from there make every later state;
//   - 157: a linearizable read sees all that was acknowledged before;
//
// and every watch ends for exactly one reason, and nothing outlives Close.
//
// Package explore does the same with more faults, from numbered seeds. Here rapid
// draws as it goes, and so can ask for what it knows to be there.
func TestRows153To157_RandomHistories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		t.Repeat(w.actions())
		w.finish()
	})
}

// TestCloseAtAnyMoment closes in the middle of everything.
func TestCloseAtAnyMoment(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		t.Repeat(w.actions())
		for _, r := range w.records {
			w.ended(r, r.watch.Err())
		}
		w.judge()
		w.close()
	})
}
