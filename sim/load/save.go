package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/judge"
)

// Saved is the position of a replay, from which another process can continue it; see
// [History].Resume. It can be encoded as JSON.
type Saved struct {
	// Origin is the checkpoint of the storage before the first change.
	Origin engine.Checkpoint `json:"origin"`
	// Watchers has the position of each watcher.
	Watchers []WatcherPosition `json:"watchers"`
}

// WatcherPosition is the position of a watcher.
type WatcherPosition struct {
	// Checkpoint is the revision up to which the watcher has received everything.
	Checkpoint engine.Checkpoint `json:"checkpoint"`
	// Received is the digest of what it has received since it last listed. With it the
	// next process finds events that were lost or repeated in this one.
	Received judge.Position `json:"received"`
	// The counts are those of [Replayed].
	Delivered uint64 `json:"delivered,omitempty"`
	Conflated uint64 `json:"conflated,omitempty"`
	Misfits   uint64 `json:"misfits,omitempty"`
	Resumed   int    `json:"resumed,omitempty"`
	Relisted  int    `json:"relisted,omitempty"`
	// Lost is why the watch ended without being stopped; nil if it has not.
	Lost *EarlierLoss `json:"lost,omitempty"`
}

// EarlierLoss is the error of a watcher that was lost before the replay was
// continued.
type EarlierLoss struct {
	// Reason is that of [Loss], and Text the error's message, or its first part.
	Reason string `json:"reason"`
	Text   string `json:"text"`
}

func (e *EarlierLoss) Error() string { return e.Text }

// maxLossText is the length of the longest Text in bytes.
const maxLossText = 200

// ErrNotSaved: [History].Save failed, which ended the replay.
var ErrNotSaved = errors.New("cannot save where the replay stands")

// defaultSaveEvery is short enough that watchers receive little again after a crash.
const defaultSaveEvery = 200 * time.Millisecond

// originOf sets the origin of a replay that is saved or continued. If it begins, the
// position of every watcher is that before the first change.
func (r *run) originOf(ctx context.Context) (err error) {
	h := r.history
	if !h.continues() {
		return nil
	}
	if h.origin, err = r.engine.Checkpoint(ctx, h.base); err != nil || h.Resume != nil {
		return err
	}
	for w := range r.everyWatcher() {
		w.position = WatcherPosition{Checkpoint: h.origin, Received: judge.Position{After: h.base, Through: h.base}}
	}
	return nil
}

// saved returns the position of the replay.
func (r *run) saved() *Saved {
	s := &Saved{Origin: r.history.origin}
	for w := range r.everyWatcher() {
		w.mu.Lock()
		s.Watchers = append(s.Watchers, w.position)
		w.mu.Unlock()
	}
	return s
}

// keepSaving saves the position of the replay: now, every SaveEvery, and once more when
// stop is called. After the first error it calls fail with that and does not save again;
// stop returns it.
func (r *run) keepSaving(fail context.CancelCauseFunc) (stop func() error) {
	h := r.history
	if h.Save == nil {
		return func() error { return nil }
	}
	var failed error
	save := func() {
		if failed != nil {
			return
		}
		if err := h.Save(r.saved()); err != nil {
			failed = fmt.Errorf("%w: %w", ErrNotSaved, err)
			fail(failed)
		}
	}
	save()
	end := repeat(context.Background(), cmp.Or(h.SaveEvery, defaultSaveEvery), save)
	return func() error {
		end()
		save()
		return failed
	}
}

// updatePosition sets the position of a watcher that has received everything up to rev. The caller
// holds mu.
func (w *watcher) updatePosition(rev engine.Revision) {
	if w.run.history == nil || w.run.history.Save == nil {
		return
	}
	received, ok := w.trail.Position()
	if !ok {
		received = judge.Position{After: rev, Through: rev}
	}
	w.position = WatcherPosition{
		Checkpoint: engine.Checkpoint{Store: w.run.history.origin.Store, Revision: rev}, Received: received,
		Delivered: w.delivered.Load(), Conflated: w.trail.Conflated, Misfits: w.trail.Disordered,
		Resumed: w.reconnects, Relisted: w.relists,
	}
}

// markLost records that the watch has ended without being stopped.
func (w *watcher) markLost(reason error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost, w.failed = reason, true
	w.position.Lost = &EarlierLoss{Reason: lossReason(reason), Text: lossText(reason)}
}

// lossText returns the message of a watch's error, or as many of its first characters as
// maxLossText bytes hold.
func lossText(reason error) string {
	text := reason.Error()
	if len(text) <= maxLossText {
		return text
	}
	return strings.ToValidUTF8(text[:maxLossText], "")
}
