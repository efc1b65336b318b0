package remote

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/usercode"
)

// overdue is how long a connection may outlast the time that was requested for it. After
// that the server, or the network, is taken to be gone.
const overdue = 30 * time.Second

// longestWatch bounds [Config].WatchTimeout, since servers refuse some larger numbers of seconds.
const longestWatch = 365 * 24 * time.Hour

// stream reads one watch's connections, one after the other, on one goroutine.
type stream struct {
	backend *Backend
	watch   *watch
	request *request
	// body is that of the connection, nil if there is none, and cancel ends the request. See hangUp.
	body   io.ReadCloser
	cancel context.CancelFunc
	at     position
	// storage identifies the storage that the position is of; "" if that is unknown.
	storage string
	// pause is how long to wait before the next connection.
	pause time.Duration
	// known are the newest objects by key, for the previous states in events; nil if the
	// consumer does not need those.
	known map[string]*store.Object
}

// remember lists the state at a revision into known.
func (s *stream) remember(ctx context.Context, prefix string, at store.Revision) error {
	list, err := s.backend.List(ctx, backend.ListOptions{Prefix: prefix, Revision: at})
	if err != nil {
		return err
	}
	if err := s.sameStorage(list.StoreID); err != nil {
		return err
	}
	s.known = make(map[string]*store.Object, len(list.Items))
	for _, o := range list.Items {
		s.known[o.Key] = o
	}
	return nil
}

// begin opens the first connection, while ctx lasts. life is the context of all connections, which
// cancel ends.
func (s *stream) begin(ctx context.Context) (life context.Context, cancel context.CancelFunc, err error) {
	life, cancel = context.WithCancel(context.Background())
	unlink := context.AfterFunc(ctx, cancel)
	err = s.connect(life)
	if unlink() && err == nil {
		return life, cancel, nil
	}
	cancel()
	s.hangUp()
	if cause := context.Cause(ctx); cause != nil {
		return nil, nil, cause
	}
	return nil, nil, s.watchError(err)
}

// connect opens a connection for the events after the position. Its answer has to begin within
// [Config].RequestTimeout; the body may last as long as the watch.
func (s *stream) connect(ctx context.Context) error {
	lasts := min(s.backend.config.WatchTimeout, longestWatch)
	lasts += rand.N(lasts/2 + 1)
	query := url.Values{
		"watch": {"true"}, "allowWatchBookmarks": {"true"}, "progressNotify": {"true"}, "resourceVersion": {s.at.after().String()},
		"timeoutSeconds": {strconv.Itoa(int(lasts / time.Second))},
	}
	s.backend.selectors(query, s.request.only)
	r := *s.request
	r.query = query
	ctx, giveUp := context.WithCancelCause(ctx)
	late := time.AfterFunc(s.backend.config.RequestTimeout, func() { giveUp(s.backend.config.noAnswer()) })
	ctx, cancel := context.WithTimeoutCause(ctx, lasts+overdue, fmt.Errorf("%w: the watch has not ended after %v", backend.ErrUnavailable, lasts+overdue))
	s.cancel = func() { cancel(); giveUp(nil) }
	resp, err := s.send(ctx, &r)
	late.Stop()
	if err != nil {
		s.cancel()
		return err
	}
	s.body = resp.Body
	s.at.connected()
	if err := s.sameStorage(s.backend.storageOf(resp.Header)); err != nil {
		s.hangUp()
		return err
	}
	return nil
}

// send sends the request of a connection. The client may be the user's.
func (s *stream) send(ctx context.Context, r *request) (resp *http.Response, err error) {
	if panicked := usercode.Call("Config.Client", "", func() { resp, err = s.backend.send(ctx, s.backend.watches, r) }); panicked != nil {
		return nil, panicked
	}
	return resp, err
}

// hangUp closes the connection, if there is one.
func (s *stream) hangUp() {
	if s.body != nil {
		s.cancel()
		_ = s.body.Close() // nothing was written to it
		s.body = nil
	}
}

// run reads connections until the watch ends, as it also does if user code ends the goroutine.
func (s *stream) run(ctx context.Context) {
	defer close(s.watch.done)
	defer s.watch.end(&usercode.PanicError{Func: "Config.Client, TokenSource, OnError or UnmarshalJSON", Value: usercode.ErrGoexit}) // unless it has ended
	defer s.hangUp()
	for {
		before, began := s.at.through, time.Now()
		err := s.read()
		s.hangUp()
		// A connection that lasted is not a failure, even if nothing was written meanwhile.
		if s.at.through > before || time.Since(began) >= s.backend.config.MaxPause {
			s.pause = s.backend.config.MinPause
		}
		if err = s.reconnect(ctx, err); err != nil {
			s.watch.end(s.watchError(err))
			return
		}
	}
}

// reconnect opens the next connection after one that ended with err, which may be nil.
func (s *stream) reconnect(ctx context.Context, err error) error {
	for {
		if err := s.wait(ctx, err); err != nil {
			return err
		}
		if err = s.connect(ctx); err == nil {
			return nil
		}
	}
}

// wait pauses before the next connection. It returns err without a pause if reconnecting
// would not help, and [store.ErrClosed] if ctx is done.
func (s *stream) wait(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return store.ErrClosed
	}
	if isFinal(err) {
		return err
	}
	if err != nil && s.backend.config.OnError != nil {
		_ = usercode.Call("Config.OnError", "", func() { s.backend.config.OnError(err) }) // the watch goes on
	}
	select {
	case <-time.After(s.nextPause(err)):
		return nil
	case <-ctx.Done():
		return store.ErrClosed
	}
}

// isFinal reports whether reconnecting after err would not help.
func isFinal(err error) bool {
	if errors.As(err, new(*FrameError)) || errors.As(err, new(*StorageError)) {
		return true
	}
	status, refused := errors.AsType[*StatusError](err)
	return refused && (!status.passing() || errors.Is(err, store.ErrFuture))
}

// nextPause returns the pause after err, which is the server's Retry-After if that is longer, and
// doubles the next one.
func (s *stream) nextPause(err error) time.Duration {
	pause := s.pause/2 + rand.N(s.pause/2+1)
	s.pause = min(2*s.pause, s.backend.config.MaxPause)
	if status, refused := errors.AsType[*StatusError](err); refused && status.Status.Details != nil {
		pause = max(pause, s.backend.config.patience(status.Status.Details.RetryAfterSeconds))
	}
	return pause
}

// watchError returns err as the error that backends have for it.
func (s *stream) watchError(err error) error {
	var status *StatusError
	switch {
	case errors.Is(err, store.ErrExpired):
		expired := &store.ExpiredError{Requested: s.at.after()}
		if errors.As(err, &status) {
			expired.Oldest = status.oldest()
		}
		return errors.Join(expired, err)
	case errors.Is(err, store.ErrFuture):
		return errors.Join(&store.FutureError{Requested: s.at.after()}, err)
	}
	return err
}

// read passes on frames until the connection ends, and returns nil if the server ended
// it. Frames that have arrived together are passed on together, so that events of one
// revision stay in one batch.
func (s *stream) read() error {
	lines := &lineReader{in: bufio.NewReaderSize(s.body, 64<<10), limit: s.backend.config.maxObject()}
	var arrived []received
	size := 0
	for {
		line, more, err := nextLine(lines)
		switch {
		case errors.Is(err, errFrameTooLarge):
			err = s.broken(err)
		case err != nil && !errors.Is(err, io.EOF):
			err = unreachable(err)
		case err == nil && len(bytes.TrimSpace(line)) > 0: // an empty line only keeps the connection alive
			var ev store.Event
			if ev, err = s.frame(line); err == nil && s.at.read(ev) {
				arrived, size = append(arrived, received{ev, len(line)}), size+len(line)
			}
		}
		if more && err == nil && size < s.backend.config.BufferBytes {
			continue
		}
		if !s.watch.put(arrived) {
			return store.ErrClosed
		}
		arrived, size = nil, 0
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// nextLine returns the next line of a body, which the user's client may have made.
func nextLine(lines *lineReader) (line []byte, more bool, err error) {
	if panicked := usercode.Call("Config.Client", "", func() { line, more, err = lines.next() }); panicked != nil {
		return nil, false, panicked
	}
	return line, more, err
}

func (s *stream) broken(cause error) error {
	return &FrameError{Request: http.MethodGet + " " + s.backend.url(s.request), Cause: cause}
}

// frame returns the event of a line.
func (s *stream) frame(line []byte) (store.Event, error) {
	var f struct {
		Type   string
		Object json.RawMessage
	}
	if err := json.Unmarshal(line, &f); err != nil {
		return store.Event{}, s.broken(err)
	}
	return s.eventOf(f.Type, f.Object)
}

// eventOf returns the event of a frame, or the error that an ERROR frame is.
func (s *stream) eventOf(name string, object []byte) (ev store.Event, err error) {
	switch name {
	case "ADDED":
		ev, err = s.event(store.Added, object)
	case "MODIFIED":
		ev, err = s.event(store.Modified, object)
	case "DELETED":
		ev, err = s.event(store.Deleted, object)
	case "BOOKMARK":
		ev, err = bookmark(object)
	case "ERROR":
		status := metav1.Status{}
		if err = json.Unmarshal(object, &status); err == nil && status.Code >= http.StatusBadRequest {
			return ev, &StatusError{Request: http.MethodGet + " " + s.backend.url(s.request), Status: status}
		}
		err = errors.Join(errors.New("an ERROR event without the Status of a failure"), err)
	default:
		err = fmt.Errorf("an event of the type %q", name)
	}
	if err != nil {
		return ev, s.broken(err)
	}
	return ev, nil
}

// bookmark returns the event of a bookmark: all events up to its revision were sent.
func bookmark(object []byte) (store.Event, error) {
	var o metav1.PartialObjectMetadata
	if err := json.Unmarshal(object, &o); err != nil {
		return store.Event{}, err
	}
	rev, err := revisionOf(o.ResourceVersion)
	return store.Event{Type: store.Bookmark, Revision: rev}, err
}

// event returns the event of an object.
func (s *stream) event(what store.EventType, object []byte) (store.Event, error) {
	o, err := s.backend.decode(object, time.Now())
	if err != nil {
		return store.Event{}, err
	}
	ev := store.Event{Type: what, Revision: o.Revision, Object: o}
	if s.known == nil {
		return ev, nil
	}
	ev.Prev = s.known[o.Key]
	if what == store.Deleted {
		delete(s.known, o.Key)
	} else {
		s.known[o.Key] = o
	}
	return ev, nil
}
