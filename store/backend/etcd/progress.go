package etcd

import (
	"context"
	"fmt"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// progressRequest is a request for progress that has brought no news, if there is one. Whether the watch ends then
// depends on whether there are any: etcd does not answer a watch that begins after its newest revision, and a member that
// receives no writes answers with what it has.
//
//	no answer, or one without news ──▶ the cluster's revision is read ──▶ the watch is there: it continues
//	                                      │ not read                └───▶ the watch is not, and has no news in time: it ends
//	                                      └──▶ it ends if there was no answer in time
type progressRequest struct {
	// since is when it was made, and late when it was found overdue; zero for never.
	since, late time.Time
	// answered: there was a response without news.
	answered bool
	// compared is sent the cluster's revision, or zero if it cannot be read; nil if it is not being read.
	compared chan store.Revision
	// behind: the watch has not come to a revision that the cluster has come to before the request.
	behind bool
}

// hurry is how often progress is requested while a reader waits for it: a member that is
// behind the others may not have reached the revision yet.
const hurry = 100 * time.Millisecond

// lastChance is how much longer to wait, at most, for an answer that is overdue. It may have come while the process,
// or the machine, was stopped: then it is overdue before it could be read.
const lastChance = time.Second

// repeat notes that the request is made, or made again. If the member has had all its time for the answer, it
// returns how long that was.
func (r *progressRequest) repeat(now time.Time, period time.Duration) (waited time.Duration) {
	switch {
	case r.since.IsZero():
		r.since = now
	case now.Sub(r.since) > period && r.late.IsZero():
		r.late = now
	case !r.late.IsZero() && now.Sub(r.late) >= min(lastChance, period):
		return now.Sub(r.since)
	}
	return 0
}

// patience is how long to wait for the answer, which usually is most.
func (r *progressRequest) patience(most time.Duration) time.Duration {
	if r.late.IsZero() {
		return most
	}
	return min(most, lastChance)
}

// compare takes the cluster's revision, zero if that is not known. It reports whether the request is at an end, as
// there is no news. If there is, a member that answers has its time for that from now on.
func (r *progressRequest) compare(newest, position store.Revision, now time.Time) (done bool) {
	r.compared = nil
	switch {
	case newest > position:
		if r.behind = true; r.answered {
			r.since, r.late = now, time.Time{}
		}
	case newest != 0:
		*r = progressRequest{}
		return true
	}
	return false
}

// answered takes a response for the answer to a request.
func (w *watcher) answered(r *progressRequest, news bool) {
	switch {
	case news:
		*r = progressRequest{}
	case !r.since.IsZero():
		r.answered = true
		w.seekNews(r)
	}
}

// request requests progress, or repeats that. It fails if the time for an answer is over, and there should be one.
func (w *watcher) request(s *stream, r *progressRequest, period time.Duration) error {
	if r.since.IsZero() {
		r.behind = w.behind()
	}
	if waited := r.repeat(time.Now(), period); waited > 0 {
		if r.behind && r.answered {
			return fmt.Errorf("%w: the member had nothing new for %v, though the cluster has", backend.ErrUnavailable, waited.Round(time.Millisecond))
		}
		if !r.answered {
			return fmt.Errorf("%w: the watch was not answered for %v", backend.ErrUnavailable, waited.Round(time.Millisecond))
		}
		*r = progressRequest{}
		return nil
	}
	if !r.late.IsZero() {
		w.seekNews(r)
	}
	return w.ask(s, period)
}

// seekNews reads the cluster's revision, unless the watch is known to be behind it.
func (w *watcher) seekNews(r *progressRequest) {
	if r.compared != nil || r.behind {
		return
	}
	compared := make(chan store.Revision, 1)
	w.backend.running.Go(func() {
		ctx, cancel := context.WithTimeoutCause(w.life, w.backend.config.RequestTimeout, errNoAnswer)
		defer cancel()
		at, _ := w.backend.position(ctx) // without one an error is none of the watch
		compared <- at.revision
	})
	r.compared = compared
}

// patience is how long to wait for a response before requesting progress.
func (w *watcher) patience(period time.Duration) time.Duration {
	if w.behind() {
		return min(hurry, period)
	}
	return period
}

// ask requests progress.
func (w *watcher) ask(s *stream, period time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(s.ctx, period, errNoAnswer)
	defer cancel()
	if err := s.watcher.RequestProgress(ctx); err != nil {
		return readError(ctx, "requesting progress", err)
	}
	return nil
}
