package etcd

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/internal/waiting"
	"github.com/watchmill/watchmill/usercode"
)

// stream is a watch of the etcd client.
type stream struct {
	// ctx is the context of the watch, which a request for progress needs, too: the
	// client finds the stream by it.
	ctx       context.Context
	stop      context.CancelFunc
	watcher   clientv3.Watcher
	responses clientv3.WatchChan
	// alone: no other stream is of the watcher, which is closed with this one.
	alone bool
}

// open opens a stream after what was received, and returns when etcd has accepted it; ctx
// bounds that. The client takes turns at the members, and one of them may be a learner, which serves no watch.
func (w *watcher) open(ctx context.Context) (*stream, error) {
	for attempt := 1; ; attempt++ {
		s, err := w.openAnywhere(ctx)
		if !errors.Is(err, errLearner) || attempt >= len(w.backend.client.Endpoints()) {
			return s, err
		}
	}
}

// openAnywhere opens a stream at the member that the client chooses.
func (w *watcher) openAnywhere(ctx context.Context) (*stream, error) {
	s := &stream{watcher: w.backend.client.Watcher}
	if w.backend.owned {
		s.watcher, s.alone = clientv3.NewWatcher(w.backend.client), true
	}
	s.ctx, s.stop = context.WithCancel(w.backend.newStream(w.life))
	unlink := context.AfterFunc(ctx, s.stop)
	defer unlink()
	place := w.backend.keys.watched(w.prefix)
	w.sent = w.position()
	opts := []clientv3.OpOption{
		clientv3.WithRange(place.end), clientv3.WithRev(int64(w.sent) + 1),
		clientv3.WithCreatedNotify(), clientv3.WithProgressNotify(), clientv3.WithFragment(),
	}
	if !w.noPrev {
		opts = append(opts, clientv3.WithPrevKV())
	}
	s.responses = s.watcher.Watch(s.ctx, place.start, opts...)
	err := w.accepted(ctx, s)
	if err == nil && !unlink() {
		err = interrupted(ctx, "starting a watch")
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// accepted reads the first response.
func (w *watcher) accepted(ctx context.Context, s *stream) error {
	select {
	case resp, open := <-s.responses:
		if !open {
			return w.brokenOff(ctx)
		}
		if err := resp.Err(); err != nil {
			return w.failure(ctx, resp)
		}
		return w.backend.checkCluster(resp.Header)
	case <-ctx.Done():
		return interrupted(ctx, "starting a watch")
	}
}

// close ends the stream and waits until the client has forgotten it. The client keeps a stream that etcd has not
// accepted when its context ends, and one that a late request for progress has opened again, until the watcher
// is closed. That of a client that was given is left alone: it has others, too, and may be a wrapper.
func (s *stream) close() {
	s.stop()
	for range s.responses {
	}
	if s.alone {
		_ = s.watcher.Close()
	}
}

// brokenOff returns the error of a stream that was closed without a response.
func (w *watcher) brokenOff(ctx context.Context) error {
	if ctx.Err() != nil {
		return interrupted(ctx, "watching")
	}
	return fmt.Errorf("%w: watching: the client was closed", backend.ErrUnavailable)
}

// failure returns the error of a response that ends the watch.
func (w *watcher) failure(ctx context.Context, resp clientv3.WatchResponse) error {
	if resp.CompactRevision != 0 {
		oldest := store.Revision(resp.CompactRevision)
		w.backend.noteCompacted(oldest)
		return &store.ExpiredError{Requested: w.position(), Oldest: oldest}
	}
	err := refusal(resp.Err())
	if errors.Is(err, rpctypes.ErrInvalidAuthToken) || errors.Is(err, rpctypes.ErrAuthOldRevision) {
		// The client has logged in for the stream, and the member has not heard of that yet.
		return fmt.Errorf("%w: watching: %w", backend.ErrUnavailable, err)
	}
	return readError(ctx, "watching", err)
}

// follow receives until the watch ends, as it also does if user code ends the goroutine. While
// pending is full there is no stream.
func (w *watcher) follow(s *stream) {
	var err error = &usercode.PanicError{Func: "Codec, Schema or Notify", Value: usercode.ErrGoexit}
	defer func() {
		if w.life.Err() == nil { // else finish was called, with the reason
			w.finish(err)
		}
	}()
	for {
		failed := w.use(s)
		if failed == nil {
			s, failed = w.reopen()
		}
		if failed != nil {
			err = failed
			return
		}
	}
}

// use receives from a stream, and closes it.
func (w *watcher) use(s *stream) error {
	defer s.close()
	return w.receive(s)
}

// reopen waits for room in pending, and opens the watch again.
func (w *watcher) reopen() (*stream, error) {
	select {
	case <-w.room:
	case <-w.life.Done():
		return nil, store.ErrClosed
	}
	ctx, cancel := context.WithTimeoutCause(w.life, w.backend.config.RequestTimeout, errNoAnswer)
	defer cancel()
	return w.open(ctx)
}

// receive takes responses until pending is full, and then returns nil, or until the watch
// ends.
func (w *watcher) receive(s *stream) error {
	period := w.backend.config.ProgressEvery
	timer := time.NewTimer(w.patience(period)) // a reader may wait since before the stream was broken off
	defer timer.Stop()
	var request progressRequest
	for {
		select {
		case resp, open := <-s.responses:
			if !open {
				return w.brokenOff(w.life)
			}
			before := w.position()
			if full, err := w.add(resp); full || err != nil {
				return err
			}
			w.answered(&request, w.position() > before)
			timer.Reset(request.patience(w.patience(period)))
			continue
		case newest := <-request.compared:
			if request.compare(newest, w.position(), time.Now()) {
				timer.Reset(w.patience(period))
			}
			continue
		case <-timer.C:
		case <-w.chased:
		case <-w.life.Done():
			return store.ErrClosed
		}
		if err := w.request(s, &request, period); err != nil {
			return err
		}
		timer.Reset(request.patience(w.patience(period)))
	}
}

// add adds the events of a response to pending, and reports whether that is full.
func (w *watcher) add(resp clientv3.WatchResponse) (full bool, err error) {
	if resp.Err() != nil {
		return false, w.failure(w.life, resp)
	}
	if err := w.backend.checkCluster(resp.Header); err != nil {
		return false, err
	}
	if resp.IsProgressNotify() {
		w.backend.recheck(w, store.Revision(resp.Header.Revision))
		return w.append(nil, store.Revision(resp.Header.Revision)), nil
	}
	events := w.unsent(resp.Events)
	if len(events) == 0 {
		return false, nil
	}
	slices.SortStableFunc(events, inOrder)
	changes, through, err := w.changes(events)
	w.sent = through
	return w.append(changes, through), err
}

// unsent returns the events that are after those that were sent before. A member that catches up by a snapshot
// sends a watch that is ahead of it events from before its start, or once more (etcd-io/etcd#20221, in 3.5.21 and
// 3.6.1). They are no changes, unless the cluster has gone back.
func (w *watcher) unsent(events []*clientv3.Event) []*clientv3.Event {
	oldest := w.sent + 1
	unsent := slices.DeleteFunc(events, func(e *clientv3.Event) bool {
		rev := store.Revision(e.Kv.ModRevision)
		oldest = min(oldest, rev)
		return rev <= w.sent
	})
	if oldest <= w.sent {
		w.backend.recheck(w, oldest)
	}
	return unsent
}

// inOrder puts the events of one revision, which a transaction or a lease can have
// several of, in the order of their keys.
func inOrder(x, y *clientv3.Event) int {
	return cmp.Or(cmp.Compare(x.Kv.ModRevision, y.Kv.ModRevision), bytes.Compare(x.Kv.Key, y.Kv.Key))
}

// recheck checks whether the cluster has gone back, if progress is before what the watch
// has received. Usually it has not: the member is behind the others.
func (b *Backend) recheck(w *watcher, progress store.Revision) {
	if progress >= w.position() {
		return
	}
	ctx, cancel := context.WithTimeout(w.life, b.config.RequestTimeout)
	defer cancel()
	if _, err := b.position(ctx); err != nil && ctx.Err() == nil {
		b.report(err)
	}
}

// append adds changes to pending: all those up to through.
func (w *watcher) append(changes []change, through store.Revision) (full bool) {
	w.mu.Lock()
	if w.err == nil {
		w.pending = append(w.pending, changes...)
		for _, c := range changes {
			w.bytes += c.bytes
		}
		w.received = max(w.received, through)
		w.arrive(w.received)
		limits := w.backend.config.Buffer
		w.full = len(w.pending) >= limits.Events || w.bytes >= limits.Bytes
		full = w.full
	}
	if full {
		w.arrive(1<<64 - 1)
	}
	woken := w.waiting.Take()
	w.mu.Unlock()
	waiting.WakeAll(woken)
	return full
}

// changes decodes events, and returns the revision up to which they are complete. With an
// error, they are those of the revisions before the failed one.
func (w *watcher) changes(events []*clientv3.Event) (changes []change, through store.Revision, err error) {
	changes = make([]change, 0, len(events))
	now := time.Now()
	for _, e := range events {
		if !store.HasPrefix(w.backend.keys.key(e.Kv.Key), w.prefix) || !w.backend.nameable(e.Kv.Key) {
			continue
		}
		ev, err := w.event(e, now)
		if err != nil {
			whole := slices.DeleteFunc(changes, func(c change) bool { return c.event.Revision == ev.Revision })
			return whole, ev.Revision - 1, err
		}
		changes = append(changes, change{ev, sizeOf(e.Kv) + sizeOf(e.PrevKv)})
	}
	return changes, store.Revision(events[len(events)-1].Kv.ModRevision), nil
}

func sizeOf(kv *mvccpb.KeyValue) int { return len(kv.GetKey()) + len(kv.GetValue()) }

// event decodes an event.
func (w *watcher) event(e *clientv3.Event, now time.Time) (store.Event, error) {
	ev := store.Event{Type: store.Modified, Revision: store.Revision(e.Kv.ModRevision)}
	var err error
	switch {
	case e.Type == clientv3.EventTypeDelete:
		ev.Type = store.Deleted
	case e.IsCreate():
		ev.Type = store.Added
	}
	if ev.Type != store.Added && !w.noPrev {
		if e.PrevKv == nil {
			return ev, &LostError{Key: w.backend.keys.key(e.Kv.Key), Revision: ev.Revision}
		}
		if ev.Prev, err = w.decode(e.PrevKv, now); err != nil {
			return ev, err
		}
	}
	switch {
	case ev.Type != store.Deleted:
		ev.Object, err = w.decode(e.Kv, now)
	case ev.Prev != nil:
		ev.Object = w.backend.values.schema.Gone(ev.Prev, ev.Revision, now)
	default:
		ev.Object = w.backend.values.frame(e.Kv, header{}, now)
	}
	if ev.Prev != nil && err == nil {
		store.ShareAttributes(ev.Object, ev.Prev)
	}
	return ev, err
}

// decode decodes a value. Config.OnUndecodable decides about one that cannot be decoded.
func (w *watcher) decode(kv *mvccpb.KeyValue, now time.Time) (*store.Object, error) {
	o, unknown := w.backend.values.decode(kv, now)
	if unknown != nil && w.backend.config.OnUndecodable == Fail {
		return nil, unknown
	}
	return o, nil
}
