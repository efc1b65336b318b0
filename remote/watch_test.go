package remote_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/remote"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/usercode"
)

// A watch goes on over connections that are cut again and again: nothing is lost or
// repeated, and nothing is listed again.
func TestWatch_GoesOnOverConnectionsThatAreCut(t *testing.T) {
	origin := newServer(t)
	first := origin.create("a", 0)
	p := newProxy(t, origin.url)
	r := replica(t, p.url)
	require.NoError(t, r.store.Engine().WaitForRevision(t.Context(), first.Revision))
	lists := origin.lists.Load()

	const writes = 300
	last := first.Revision + writes
	done := make(chan []engine.Event[Widget])
	go func() { done <- follow(t, r.store.Engine(), first.Revision, last) }()
	for i := range writes {
		origin.resize("a", i+1)
		if i%20 == 0 {
			p.cut()
		}
	}
	events := <-done
	require.Len(t, events, writes)
	for i, ev := range events {
		require.Equal(t, first.Revision+engine.Revision(i)+1, ev.Revision)
		require.Equal(t, i+1, ev.Object.Value.Spec.Size)
	}
	require.Equal(t, lists, origin.lists.Load(), "no list")
	require.Positive(t, p.cuts)
}

// A connection that comes back after the origin has given up its history ends the watch
// as expired, and the replica lists.
func TestWatch_ListsAgainWhenHistoryIsGone(t *testing.T) {
	origin := newServer(t, func(cfg *registry.Config[Widget]) {
		cfg.Engine.Window.MaxEvents, cfg.Engine.FreshnessTimeout = 10, 100*time.Millisecond
	})
	first := origin.create("a", 0)
	b := backendAt(t, origin.url)
	for i := range 50 {
		origin.resize("a", i+1)
	}
	last := origin.create("z", 1)
	require.Eventually(t, func() bool { return origin.store.Engine().WaitForRevision(t.Context(), last.Revision) == nil }, patience, time.Millisecond)
	last = origin.resize("a", 51) // storage gives up what its cache had not read at the write before
	_, err := b.Watch(t.Context(), backend.WatchOptions{From: first.Revision, Notify: func() {}})
	require.ErrorIs(t, err, store.ErrExpired)
	_, err = b.Watch(t.Context(), backend.WatchOptions{From: last.Revision + 1000, Notify: func() {}, NoPrev: true})
	require.ErrorIs(t, err, store.ErrFuture)
}

// frames returns a server that answers each watch with the next of the answers.
func frames(t *testing.T, answers ...string) *httptest.Server {
	t.Helper()
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i := int(n.Add(1)) - 1
		if i >= len(answers) {
			w.WriteHeader(http.StatusGone)
			return
		}
		code, body, _ := strings.Cut(answers[i], " ")
		status := 0
		_, err := fmt.Sscan(code, &status)
		if err != nil {
			panic(err)
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body)) // the client may be gone
	}))
	t.Cleanup(s.Close)
	return s
}

// readAll reads a watch to its end.
func readAll(t *testing.T, b *remote.Backend, limit int) (events []store.Event, end error) {
	t.Helper()
	ready := make(chan struct{}, 1)
	w, err := b.Watch(t.Context(), backend.WatchOptions{From: 5, NoPrev: true, Notify: func() {
		select {
		case ready <- struct{}{}:
		default:
		}
	}})
	if err != nil {
		return nil, err
	}
	defer w.Close()
	after := store.Revision(5)
	for {
		batch, err := w.Next(limit)
		if err != nil {
			return events, err
		}
		require.Equal(t, after, batch.After)
		events = append(events, batch.Events...)
		if len(batch.Events) == 0 && batch.Through == after {
			<-ready
		}
		after = batch.Through
	}
}

func object(name string, rev int) string {
	return fmt.Sprintf(`{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"namespace":"default","name":%q,"uid":"u-%s","resourceVersion":"%d"},"spec":{"size":1}}`, name, name, rev)
}

func event(what, name string, rev int) string {
	return fmt.Sprintf(`{"type":%q,"object":%s}`+"\n", what, object(name, rev))
}

// A frame that is not an event ends the watch with an error that says so. After a failure
// that may pass, the watch is tried again from where it was.
func TestWatch_WhatServersSend(t *testing.T) {
	const expired = `{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}` + "\n"
	const busy = `{"type":"ERROR","object":{"kind":"Status","code":429,"reason":"TooManyRequests"}}` + "\n"
	var frame *remote.FrameError
	var status *remote.StatusError
	for _, c := range []struct {
		name    string
		answers []string
		events  int
		check   func(error) bool
	}{
		{"it ends, and goes on", []string{"200 " + event("ADDED", "a", 6), "200 " + event("MODIFIED", "a", 7), "200 " + expired}, 2, func(err error) bool { return errors.Is(err, store.ErrExpired) }},
		{"it is busy", []string{"200 " + event("ADDED", "a", 6) + busy, "429 {}", "503 <html>", "200 " + event("DELETED", "a", 8) + expired}, 2, func(err error) bool { return errors.Is(err, store.ErrExpired) }},
		{"lines that keep it alive", []string{"200 \n\n\r\n" + event("ADDED", "a", 6) + "\n" + expired}, 1, func(err error) bool { return errors.Is(err, store.ErrExpired) }},
		{"no JSON", []string{"200 " + event("ADDED", "a", 6) + "hello\n"}, 1, func(err error) bool { return errors.As(err, &frame) }},
		{"a line that is cut", []string{"200 " + event("ADDED", "a", 6)[:50], "200 " + event("ADDED", "a", 6)}, 1, func(err error) bool { return errors.Is(err, store.ErrExpired) }},
		{"an unknown type", []string{"200 " + event("REMADE", "a", 6)}, 0, func(err error) bool { return errors.As(err, &frame) }},
		{"another kind", []string{"200 " + strings.Replace(event("ADDED", "a", 6), `"Widget"`, `"Gadget"`, 1)}, 0, func(err error) bool { return errors.As(err, &frame) }},
		{"a revision that is not a number", []string{"200 " + strings.Replace(event("ADDED", "a", 6), `"6"`, `"x6"`, 1)}, 0, func(err error) bool { return errors.As(err, &frame) }},
		{"no revision", []string{"200 " + strings.Replace(event("ADDED", "a", 6), `"6"`, `""`, 1)}, 0, func(err error) bool { return errors.As(err, &frame) }},
		{"an error without a status", []string{`200 {"type":"ERROR","object":{}}` + "\n"}, 0, func(err error) bool { return errors.As(err, &frame) }},
		{"an error that is none", []string{`200 {"type":"ERROR","object":{"kind":"Status","code":200}}` + "\n"}, 0, func(err error) bool { return errors.As(err, &frame) }},
		{"an error without a reason", []string{"200 " + event("ADDED", "a", 6) + `{"type":"ERROR","object":{"kind":"Status","code":410}}` + "\n"}, 1, func(err error) bool {
			return errors.Is(err, store.ErrExpired) && strings.HasSuffix(err.Error(), "widgets: 410: Gone")
		}},
		{"a bookmark without a revision", []string{`200 {"type":"BOOKMARK","object":{}}` + "\n"}, 0, func(err error) bool { return errors.As(err, &frame) }},
		{"a key that cannot be", []string{"200 " + strings.Replace(event("ADDED", "a", 6), `"default"`, `".."`, 1)}, 0, func(err error) bool { return errors.As(err, &frame) }},
		{"a frame of 20 MB", []string{"200 " + strings.Repeat(" ", 20<<20)}, 0, func(err error) bool { return errors.As(err, &frame) }},
		{"nested a million times", []string{"200 " + strings.Replace(event("ADDED", "a", 6), `"spec":`, `"x":`+strings.Repeat("[", 1<<20)+`,"spec":`, 1)}, 0, func(err error) bool { return errors.As(err, &frame) }},
		{"not allowed", []string{"403 no"}, 0, func(err error) bool { return errors.Is(err, backend.ErrDenied) && errors.As(err, &status) }},
		{"not served", []string{"404 no"}, 0, func(err error) bool { return errors.As(err, &status) && status.Status.Code == 404 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := backendAt(t, frames(t, c.answers...).URL)
			events, err := readAll(t, b, 1)
			require.True(t, c.check(err), "%v", err)
			require.Len(t, events, c.events)
		})
	}
}

// Events of one revision stay together, if they came together.
func TestWatch_EventsOfOneRevisionStayTogether(t *testing.T) {
	const end = `{"type":"ERROR","object":{"kind":"Status","code":410}}` + "\n"
	b := backendAt(t, frames(t, "200 "+event("ADDED", "a", 6)+event("ADDED", "b", 6)+event("ADDED", "c", 7)+end).URL)
	stop := make(chan struct{})
	w, err := b.Watch(t.Context(), backend.WatchOptions{From: 5, NoPrev: true, Notify: func() { close(stop) }})
	require.NoError(t, err)
	defer w.Close()
	batch, err := w.Next(1)
	for err == nil && len(batch.Events) == 0 && batch.Through == batch.After {
		<-stop
		batch, err = w.Next(1)
	}
	require.NoError(t, err)
	require.Len(t, batch.Events, 2, "those of revision 6")
}

// A consumer that does not read makes the watch stop reading, and it holds no more than
// its buffer and one event.
func TestWatch_OfASlowConsumerReadsNoMoreThanItsBuffer(t *testing.T) {
	big := strings.Replace(event("ADDED", "a", 6), `"size":1`, `"size":1,"x":"`+strings.Repeat("x", 64<<10)+`"`, 1)
	const events, buffer = 64, 256 << 10
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for rev := 6; rev < 6+events; rev++ {
			if _, err := w.Write(bytes.Replace([]byte(big), []byte(`"6"`), fmt.Appendf(nil, `"%d"`, rev), 1)); err != nil {
				return
			}
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	defer s.Close()
	b := backendAt(t, s.URL, func(c *remote.Config) { c.BufferBytes = buffer })
	notify, notified := bell()
	w, err := b.Watch(t.Context(), backend.WatchOptions{From: 5, NoPrev: true, Notify: notify})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return remote.Held(w) >= buffer }, patience, time.Millisecond)
	for got := 0; got < events; {
		require.Less(t, remote.Held(w), 2*buffer)
		batch, err := w.Next(1)
		require.NoError(t, err)
		if got += len(batch.Events); len(batch.Events) == 0 {
			<-notified
		}
	}
	w.Close()
	_, err = w.Next(1)
	require.ErrorIs(t, err, store.ErrClosed)
}

// bell returns a notify function that never blocks, and a channel that has one value while
// a notification has not been received.
func bell() (notify func(), notified <-chan struct{}) {
	rung := make(chan struct{}, 1)
	return func() {
		select {
		case rung <- struct{}{}:
		default:
		}
	}, rung
}

// Close ends watches in every state.
func TestBackend_CloseEndsWatches(t *testing.T) {
	origin := newServer(t)
	first := origin.create("a", 1)
	b := backendAt(t, origin.url)
	notify, notified := bell()
	w, err := b.Watch(t.Context(), backend.WatchOptions{From: first.Revision, Notify: notify})
	require.NoError(t, err)
	_, err = w.Next(1)
	require.NoError(t, err)
	require.NoError(t, b.Close())
	for err == nil { // a notification may also be of a bookmark that came before
		<-notified
		_, err = w.Next(1)
	}
	require.ErrorIs(t, err, store.ErrClosed)
	_, err = b.List(t.Context(), backend.ListOptions{})
	require.ErrorIs(t, err, store.ErrClosed)
	require.NoError(t, b.Close())
}

// A call ends with its context, and leaves no open watch behind.
func TestBackend_CallsEndWithTheirContext(t *testing.T) {
	asked, release := make(chan struct{}, 2), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer s.Close()
	defer close(release)
	b := backendAt(t, s.URL)
	why := errors.New("the caller has had enough")
	for _, call := range []func(context.Context) error{
		func(ctx context.Context) error { _, err := b.Get(ctx, "default/a"); return err },
		func(ctx context.Context) error {
			_, err := b.Watch(ctx, backend.WatchOptions{From: 1, NoPrev: true, Notify: func() {}})
			return err
		},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error)
		go func() { done <- call(ctx) }()
		<-asked
		cancel(why)
		require.ErrorIs(t, <-done, why)
	}
}

// A write without an answer may have been done; its error differs from that of a write
// that was not sent.
func TestBackend_UnknownOutcomesAreToldApart(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	b := backendAt(t, s.URL)
	body := []byte(object("a", 1))
	_, err := b.ForwardCreate(t.Context(), "default", body, registry.WriteOptions{})
	require.ErrorIs(t, err, backend.ErrUncertain)
	require.ErrorContains(t, err, `whether the create of "default/a" was done is unknown`)
	_, err = b.ForwardCreate(t.Context(), "default", []byte(`{"metadata":{"generateName":"b-"}}`), registry.WriteOptions{})
	require.ErrorContains(t, err, `whether the create of "default/b-" was done is unknown`)
	s.Close()
	_, err = b.ForwardCreate(t.Context(), "default", body, registry.WriteOptions{})
	require.NotErrorIs(t, err, backend.ErrUncertain)
	require.ErrorIs(t, err, backend.ErrUnavailable)
}

// Lists are read in pages at one revision, also after a key in the middle.
func TestBackend_ListsInPages(t *testing.T) {
	origin := newServer(t)
	for i := range 10 {
		origin.create(fmt.Sprintf("w%d", i), 1)
	}
	b := backendAt(t, origin.url)
	var names []string
	opts := backend.ListOptions{Limit: 3}
	var at store.Revision
	for {
		page, err := b.List(t.Context(), opts)
		require.NoError(t, err)
		for _, o := range page.Items {
			names = append(names, o.Key)
		}
		require.True(t, at == 0 || at == page.Revision)
		at = page.Revision
		if page.Continue == "" {
			break
		}
		origin.resize("w9", len(names)+5)
		opts.Continue = page.Continue
	}
	require.Len(t, names, 10)

	page, err := b.List(t.Context(), backend.ListOptions{Limit: 2, Continue: backend.Token{Revision: at, Start: "default/w4"}.Encode()})
	require.NoError(t, err)
	require.Equal(t, "default/w5", page.Items[0].Key)
	require.Len(t, page.Items, 2)
	require.Equal(t, 3, page.Remaining)

	page, err = b.List(t.Context(), backend.ListOptions{Start: "default/w8"})
	require.NoError(t, err)
	require.Len(t, page.Items, 2)
	require.Equal(t, "default/w8", page.Items[0].Key)

	_, err = b.List(t.Context(), backend.ListOptions{Continue: "remote:nonsense"})
	require.ErrorIs(t, err, store.ErrInvalidContinue)
	under, err := b.List(t.Context(), backend.ListOptions{Prefix: "default/w1"})
	require.NoError(t, err)
	require.Len(t, under.Items, 1)
	none, err := b.List(t.Context(), backend.ListOptions{Prefix: "other"})
	require.NoError(t, err)
	require.Empty(t, none.Items)
}

// What the protocol cannot do fails with an error that says so.
func TestBackend_RefusesWhatTheProtocolHasNot(t *testing.T) {
	origin := newServer(t)
	b := backendAt(t, origin.url)
	require.ErrorIs(t, b.Compact(t.Context(), 1), store.ErrUnsupported)
	o := origin.create("a", 1)
	draft, err := b.Get(t.Context(), "default/a")
	require.NoError(t, err)
	require.Equal(t, o.Revision, draft.Revision)
	_, err = b.Put(t.Context(), draft, nil, backend.PutOptions{TTL: time.Minute})
	require.ErrorIs(t, err, store.ErrUnsupported)
	_, err = b.Get(t.Context(), "../etc")
	require.ErrorIs(t, err, store.ErrInvalidKey)
	_, err = backendAt(t, frames(t, `200 {"metadata":{"resourceVersion":"x7"}}`).URL).List(t.Context(), backend.ListOptions{})
	require.ErrorIs(t, err, store.ErrUnsupported, "revisions that are not numbers")
}

func TestConfig_IsChecked(t *testing.T) {
	for field, cfg := range map[string]remote.Config{
		"URL":            {URL: "10.0.0.1:8080"},
		"URL ":           {URL: "http://user:secret@host"},
		"URL      ":      {URL: "http://user:#secret@host"},
		"URL  ":          {URL: "http://h/?x=1"},
		"URL   ":         {URL: "http://h/#x"},
		"URL    ":        {URL: "http:///path"},
		"URL     ":       {URL: "ftp://h"},
		"Labels":         {URL: "http://h", Labels: "a in"},
		"Fields":         {URL: "http://h", Fields: "a"},
		"Namespace":      {URL: "http://h", Namespace: "a/b"},
		"TokenSource":    {URL: "http://h", Token: "t", TokenSource: func(context.Context) (string, error) { return "", nil }},
		"Client":         {URL: "http://h", Client: &http.Client{Timeout: time.Second}},
		"RequestTimeout": {URL: "http://h", RequestTimeout: -1},
		"WatchTimeout":   {URL: "http://h", WatchTimeout: time.Millisecond},
		"MaxPause":       {URL: "http://h", MinPause: time.Second, MaxPause: time.Millisecond},
		"BufferBytes":    {URL: "http://h", BufferBytes: -1},
		"MaxListBytes":   {URL: "http://h", MaxListBytes: -1},
	} {
		format, err := registry.FormatOf(widgets(new(atomic.Int64)))
		require.NoError(t, err)
		_, err = remote.New(format, cfg)
		var wrong *usercode.ConfigError
		require.ErrorAs(t, err, &wrong, field)
		require.Equal(t, strings.TrimSpace(field), wrong.Field)
		require.NotContains(t, err.Error(), "secret")
	}
	format, err := registry.FormatOf(widgets(new(atomic.Int64)))
	require.NoError(t, err)
	b, err := remote.New(format, remote.Config{URL: "http://h", MinPause: time.Hour})
	require.NoError(t, err, "MaxPause is not less by default")
	require.NoError(t, b.Close())
	scoped := widgets(new(atomic.Int64))
	scoped.Kind.ClusterScoped = true
	format, err = registry.FormatOf(scoped)
	require.NoError(t, err)
	_, err = remote.New(format, remote.Config{URL: "http://h", Namespace: "default"})
	require.ErrorContains(t, err, `: Namespace is "default", but a Widget has no namespace`)
}
