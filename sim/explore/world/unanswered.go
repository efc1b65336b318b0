package world

import (
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/explore/internal/storage"
	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// A write that storage has left without an answer must fail as one whose outcome is unknown, and must not
// be tried again. Storage has then been asked for the change that the call was to make, and has made that or none.
// The history says which, and all that is shown afterwards must agree with it.
//
//	call ──▶ engine ──▶ storage: done, late or never ──▶ history ──▶ reads, watches, mirrors
//	     ◀── backend.ErrUncertain

// writer returns the engine through which a step writes.
func (w *World[T]) writer(s script.Step) *engine.Engine[T] {
	w.storage.Unanswered = nil // those of what Attach has started
	return w.engineOfStep(s)
}

// isUnanswered reports whether storage has left a write without an answer that was to make the change a and returned
// err, or err says so, and judges that.
func (w *World[T]) isUnanswered(s script.Step, a asked[T], err error) bool {
	lost := w.storage.Unanswered
	w.storage.Unanswered = nil
	switch unknown := backend.Uncertain(err); {
	case len(lost) == 0 && !unknown:
		return false
	case len(lost) == 0:
		w.fail(judge.Failed(judge.Refusals, s.Do.String(), "%v, but storage has answered", err))
	case !unknown:
		w.fail(judge.Failed(judge.Acknowledged, s.Do.String(), "storage has not answered, and it returned: %v", err))
	case len(lost) > 1:
		w.fail(judge.Failed(judge.Acknowledged, s.Do.String(), "it was tried again, although the outcome was unknown"))
	default:
		w.judgeUnanswered(s, a, lost[0])
	}
	return true
}

// judgeUnanswered judges a write without an answer by the change that storage was asked for.
func (w *World[T]) judgeUnanswered(s script.Step, a asked[T], lost storage.Unanswered[T]) {
	done := lost.Revision > 0
	switch expires := w.storage.Expiry(a.key); {
	case lost.Kind != a.kind || lost.Key != a.key:
		w.fail(judge.Failed(judge.Acknowledged, s.Do.String(), "it was to be %v of %q, and storage was asked for %v of %q", a.kind, a.key, lost.Kind, lost.Key))
	case a.value != nil && !w.storage.Equal(*lost.Value, w.written(*a.value)):
		w.fail(judge.Failed(judge.Acknowledged, s.Do.String(), "%q was to become %v, and storage was asked for %v", a.key, *a.value, *lost.Value))
	case done && lost.Revision != w.newest():
		w.fail(judge.Failed(judge.Acknowledged, s.Do.String(), "%q was written at %d without an answer, and more was", a.key, lost.Revision))
	case done && a.kind == store.Added && a.leaves != 0:
		w.fail(judge.Failed(judge.Acknowledged, s.Do.String(), "%q had an equal value, and was written without an answer", a.key))
	case done && a.kind == store.Added && !expires.Equal(a.expires):
		w.fail(judge.Failed(judge.Expires, s.Do.String(), "%q was to expire at %v, and expires at %v", a.key, a.expires, expires))
	}
}
