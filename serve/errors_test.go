package serve_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/faulty"
	"github.com/watchmill/watchmill/store/backend/memory"
	"github.com/watchmill/watchmill/usercode"
)

const gadgets = "/apis/example.com/v1/namespaces/default/gadgets"

// failing is the kind Gadget, of which every read and every watch ends as fault says.
type failing struct {
	registry.Resource
	registry.Stream // nil, since it has all methods itself
	fault           func(ctx context.Context) error
}

func (f *failing) Resources() []registry.Resource { return []registry.Resource{f} }

func (f *failing) Get(ctx context.Context, _ string, _ engine.GetOptions) (registry.Item, error) {
	return registry.Item{}, f.fault(ctx)
}

func (f *failing) Create(ctx context.Context, _ string, _ []byte, _ registry.WriteOptions) (registry.Item, error) {
	return registry.Item{}, f.fault(ctx)
}

func (f *failing) WaitForRevision(context.Context, engine.Revision) error { return nil }

func (f *failing) Watch(context.Context, engine.WatchOptions) (registry.Stream, error) { return f, nil }

func (f *failing) Next(ctx context.Context) ([]store.Event, error) { return nil, f.fault(ctx) }
func (f *failing) Item(*store.Object) registry.Item                { return registry.Item{} }
func (f *failing) Stop()                                           {}
func (f *failing) Revision() engine.Revision                       { return 0 }
func (f *failing) Lag() uint64                                     { return 0 }

// newFaulty serves gadgets, whose error is what fault returns.
func newFaulty(t *testing.T, fault func(ctx context.Context) error, edit ...func(*registry.Config[Widget], *serve.Config)) *server {
	t.Helper()
	gadgets, err := registry.New(registry.Config[Widget]{Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Gadget"}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, gadgets.Close()) })
	return newServer(t, append(edit, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Resources = append(c.Resources, &failing{Resource: gadgets.Resources()[0], fault: fault})
	})...)
}

// Each error of an engine has its status, and the header mirrors the time after which the
// client may come back.
func TestErrors_OfTheEngine(t *testing.T) {
	var fault error
	s := newFaulty(t, func(context.Context) error { return fault })
	for _, c := range []struct {
		fault error
		want  string
	}{
		{engine.ErrNotFound, "404 NotFound gadgets/a"},
		{engine.ErrExists, "409 AlreadyExists gadgets/a"},
		{engine.ErrConflict, "409 Conflict gadgets/a"},
		{engine.ErrPrecondition, "409 Conflict gadgets/a"},
		{engine.ErrInvalidRead, "422 Invalid"},
		{engine.ErrInvalidList, "422 Invalid"},
		{engine.ErrInvalidWatch, "422 Invalid"},
		{engine.ErrInvalidSelector, "400 BadRequest"},
		{engine.ErrInvalidKey, "400 BadRequest"},
		{engine.ErrInvalidContinue, "400 BadRequest"},
		{engine.ErrExpired, "410 Expired"},
		{engine.ErrFuture, "504 Timeout 1 ResourceVersionTooLarge"},
		{engine.ErrNotReady, "429 TooManyRequests 1"},
		{&engine.NotReadyError{RetryAfter: 2500 * time.Millisecond, Cause: errors.New("it lists")}, "429 TooManyRequests 3"},
		{&engine.NotReadyError{RetryAfter: 2 * time.Second, Cause: fmt.Errorf("%w: %w", backend.ErrUnavailable, apierrors.NewServiceUnavailable("busy"))}, "429 TooManyRequests 2"},
		{&engine.NotReadyError{RetryAfter: time.Second, Cause: store.ErrClosed, Final: true}, "503 ServiceUnavailable"},
		{&engine.NotReadyError{RetryAfter: time.Second, Cause: engine.ErrUnsupported, Final: true}, "503 ServiceUnavailable"},
		{store.ErrClosed, "503 ServiceUnavailable"},
		{engine.ErrEngineClosed, "429 TooManyRequests 1"},
		{fmt.Errorf("%w: %w", engine.ErrEngineClosed, store.ErrClosed), "429 TooManyRequests 1"},
		{&backend.TooLargeError{Size: 2, Limit: 1}, "413 RequestEntityTooLarge"},
		{errors.New("unplugged"), "500 ServerTimeout gadgets/get 2"},
		{backend.ErrUnavailable, "500 ServerTimeout gadgets/get 2"},
		{backend.ErrFull, "500 ServerTimeout gadgets/get 2"},
		{backend.ErrFailed, "500 InternalError"},
		{backend.ErrReadOnly, "500 InternalError"},
		{backend.ErrCorrupt, "500 InternalError"},
		{&backend.UndecodableError{Key: "default/a", Cause: errors.New("no key")}, "500 InternalError"},
		{backend.ErrDenied, "500 InternalError"},
		{&usercode.PanicError{Func: "Strategy.Validate", Value: "odd"}, "500 InternalError"},
		{&backend.UncertainError{Cause: errors.New("reset")}, "500 InternalError"},
		{&backend.UncertainError{Cause: engine.ErrConflict}, "500 InternalError"},
		{&backend.UncertainError{Cause: &backend.TooLargeError{Size: 2, Limit: 1}}, "500 InternalError"},
		{&backend.UncertainError{Cause: &engine.NotReadyError{RetryAfter: time.Second}}, "500 InternalError"},
		{&backend.UncertainError{Cause: store.ErrClosed}, "503 ServiceUnavailable"},
		{&backend.UncertainError{Cause: &usercode.PanicError{Func: "Config.SetRevision", Value: "odd"}}, "500 InternalError"},
		{&backend.UncertainError{Cause: context.DeadlineExceeded}, "504 Timeout"},
		{fmt.Errorf("%w: %w", engine.ErrDraining, backend.ErrUncertain), "500 InternalError"},
		{engine.ErrUnsupported, "405 MethodNotAllowed"},
	} {
		fault = fmt.Errorf("while it was asked: %w", c.fault)
		a := s.get(gadgets + "/a")
		got := []string{fmt.Sprint(a.code), a.str("reason")}
		if kind := a.str("details.kind"); kind != "<nil>" && kind != "<none>" {
			got = append(got, kind+"/"+a.str("details.name"))
		}
		if after := a.str("details.retryAfterSeconds"); after != "<nil>" && after != "<none>" {
			require.Equal(t, after, a.header.Get("Retry-After"), c.want)
			got = append(got, after)
		} else {
			require.Empty(t, a.header.Get("Retry-After"), c.want)
		}
		if strings.Contains(c.want, "ResourceVersionTooLarge") {
			got = append(got, a.str("details.causes.0.reason"))
		}
		require.Equal(t, c.want, strings.Join(got, " "), a.body)
		require.Equal(t, "Status v1 Failure", a.str("kind")+" "+a.str("apiVersion")+" "+a.str("status"))
	}
}

// An admitter's refusal is a 403, whatever the error that it gives matches: that is not of the
// object of the request. Some errors have an answer of their own.
func TestErrors_OfAdmitters(t *testing.T) {
	var refusal error
	s := newServer(t, func(w *registry.Config[Widget], _ *serve.Config) {
		w.Admit = []registry.Admitter{registry.AdmitFunc(func(context.Context, *registry.Admission) error { return refusal })}
	})
	s.create("a", 1)
	for _, c := range []struct {
		refusal error
		want    string
	}{
		{errors.New("the quota is used up"), "403 Forbidden"},
		{engine.ErrNotFound, "403 Forbidden"},
		{engine.ErrConflict, "403 Forbidden"},
		{&registry.InvalidError{}, "422 Invalid"},
		{&registry.BadRequestError{Reason: "no"}, "400 BadRequest"},
		{&registry.BadRequestError{Reason: "no", Cause: errors.New("it is Sunday")}, "400 BadRequest"},
		{apierrors.NewInternalError(errors.New("no")), "500 InternalError"},
		{engine.ErrNotReady, "429 TooManyRequests"},
		{&backend.UncertainError{Cause: errors.New("another object's")}, "403 Forbidden"},
		{context.DeadlineExceeded, "504 Timeout"},
		{&usercode.PanicError{Func: "a rule", Value: "odd"}, "500 InternalError"},
	} {
		refusal = fmt.Errorf("checking: %w", c.refusal)
		for _, a := range []answer{
			s.do("POST", inDefault, `{"metadata":{"name":"b"}}`),
			s.do("PATCH", inDefault+"/a", `{"spec":{"size":2}}`, "Content-Type", mergePatch),
			s.do("DELETE", inDefault+"/a", ""), s.do("DELETE", inDefault, ""),
		} {
			require.Equal(t, c.want, fmt.Sprintf("%d %s", a.code, a.str("reason")), a.body)
			if a.code == 403 {
				require.Contains(t, a.str("message"), "is forbidden: "+refusal.Error())
				require.Empty(t, a.header.Get("Retry-After"))
			}
		}
	}
}

// A Status by hand may have no code, or one that is not a failure's. Its message arrives all the same.
func TestErrors_OfAStatusWithoutTheCodeOfAFailure(t *testing.T) {
	refusal := &apierrors.StatusError{}
	s := newServer(t, func(w *registry.Config[Widget], _ *serve.Config) {
		w.Admit = []registry.Admitter{registry.AdmitFunc(func(context.Context, *registry.Admission) error { return refusal })}
	})
	for code, want := range map[int32]int{0: 500, 99: 500, 100: 500, 204: 500, 304: 500, 451: 451, 599: 599, 600: 500, 1000: 500} {
		refusal.ErrStatus = metav1.Status{Code: code, Reason: "Sunday", Message: "not today"}
		a := s.do("POST", inDefault, `{"metadata":{"name":"a"}}`)
		require.Equal(t, want, a.code, code)
		require.Equal(t, fmt.Sprintf("Failure %d Sunday not today", want), strings.Join([]string{a.str("status"), a.str("code"), a.str("reason"), a.str("message")}, " "))
	}
}

// A key of a map is in the path of each field below it. The answer must not have it a hundred times.
func TestErrors_OfLongPathsAreCut(t *testing.T) {
	s := newServer(t, func(w *registry.Config[Widget], _ *serve.Config) {
		w.Strategy.Validate = func(_ context.Context, w, _ *Widget) (wrong field.ErrorList) {
			for i := range 100 {
				wrong = append(wrong, field.Required(field.NewPath("spec").Key(w.Spec.Color).Index(i), ""))
			}
			return wrong
		}
	})
	a := s.do("POST", inDefault, fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"color":%q}}`, strings.Repeat("n", 1<<20), strings.Repeat("c", 100<<10)))
	require.Equal(t, 422, a.code)
	require.Equal(t, "Invalid value: \"nnn", a.str("details.causes.0.message")[:19])
	require.True(t, strings.HasPrefix(a.str("details.causes.99.field"), "spec[ccc"))
	require.True(t, strings.HasPrefix(a.str("details.name"), "nnn"))
	require.Less(t, len(a.body), 2<<20)
}

// Clients send a write again if its answer has a Retry-After, and this one may have been done: each would
// create an object with another name.
func TestErrors_OfAWriteThatMayHaveBeenDone(t *testing.T) {
	var storage *faulty.Backend
	s := newServer(t, func(of *registry.Config[Widget], _ *serve.Config) {
		beneath, err := memory.New(registry.Schema(*of), memory.Options{})
		require.NoError(t, err)
		storage = faulty.New(beneath, faulty.Options{})
		of.Engine.Backend = storage
	})
	s.create("a", 1)
	storage.Add(faulty.Rule{Ops: faulty.Writes, Do: faulty.After(func(_ context.Context, c *faulty.Call) {
		c.Err = &backend.UncertainError{Verb: c.Op.String(), Key: c.Key, Cause: errors.New("connection reset")}
	})})
	for _, a := range []answer{
		s.do("POST", inDefault, `{"metadata":{"generateName":"b-"}}`),
		s.do("PUT", inDefault+"/a", `{"metadata":{"name":"a"},"spec":{"size":2}}`),
		s.do("DELETE", inDefault+"/a", ""),
	} {
		require.Equal(t, "500 InternalError", fmt.Sprintf("%d %s", a.code, a.str("reason")), a.body)
		require.Empty(t, a.header.Get("Retry-After"))
		require.Contains(t, a.str("message"), "read it again before you decide what to do: connection reset")
	}
	left := s.get(inDefault)
	require.Contains(t, left.str("items.0.metadata.name"), "b-", "each of them was done")
	require.Equal(t, "<none>", left.str("items.1"), left.body)
}

// A request that takes longer than its time is answered with 504.
func TestErrors_OfRequestsThatTakeTooLong(t *testing.T) {
	s := newFaulty(t, func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Limits.ReadTimeout, c.Limits.WriteTimeout = time.Millisecond, time.Millisecond
	})
	for _, a := range []answer{s.get(gadgets + "/a"), s.do("POST", gadgets, `{"metadata":{"name":"a"}}`)} {
		require.Equal(t, "504 Timeout", fmt.Sprintf("%d %s", a.code, a.str("reason")), a.body)
	}
}

// A client may ask for less time than the server allows, not for more. A watch has
// timeoutSeconds for that, and goes on.
func TestErrors_OfRequestsThatTakeLongerThanTheyAskFor(t *testing.T) {
	s := newFaulty(t, func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	})
	for _, a := range []answer{s.get(gadgets + "/a?timeout=1ms"), s.do("POST", gadgets+"?timeout=1ms", `{"metadata":{"name":"a"}}`)} {
		require.Equal(t, "504 Timeout", fmt.Sprintf("%d %s", a.code, a.str("reason")), a.body)
	}
	var left []time.Duration
	s = newFaulty(t, func(ctx context.Context) error {
		end, _ := ctx.Deadline()
		left = append(left, time.Until(end))
		return engine.ErrNotFound
	}, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Limits.ReadTimeout, c.Limits.WriteTimeout = time.Hour, time.Hour
	})
	s.get(gadgets + "/a?timeout=10h")
	s.do("POST", gadgets+"?timeout=10h", `{"metadata":{"name":"a"}}`)
	require.Len(t, left, 2)
	for _, one := range left {
		require.Positive(t, one, "there is a deadline")
		require.LessOrEqual(t, one, time.Hour)
	}
	plain := newServer(t)
	plain.create("a", 1)
	for _, timeout := range []string{"0s", "-1s", "1h", "10000h", ""} {
		require.Equal(t, 200, plain.get(inDefault+"/a?timeout="+timeout).code, timeout)
	}
	for _, path := range []string{inDefault + "/a", inDefault, "/version", "/apis"} {
		a := plain.get(path + "?timeout=soon")
		require.Equal(t, `400 invalid timeout specified in the request URL: "soon" is not a duration such as 5s`, fmt.Sprintf("%d %s", a.code, a.str("message")), path)
	}
	f, _ := plain.watch(inDefault + "?watch=1&timeout=1ns").next()
	require.Equal(t, "ADDED a", f.String())
}

// What ends a watch is told in the stream. Before the initial state is complete it is
// always a 429, since stock informers answer everything else with a storm of requests.
func TestErrors_InsideWatches(t *testing.T) {
	var fault error
	s := newFaulty(t, func(context.Context) error { return fault })
	at := "&resourceVersion=" + s.create("a", 1)
	const initial = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
	for _, c := range []struct {
		fault       error
		start, want string
	}{
		{engine.ErrExpired, initial, "ERROR 429 TooManyRequests 1"},
		{engine.ErrEngineClosed, initial, "ERROR 429 TooManyRequests 1"},
		{errors.New("unplugged"), initial, "ERROR 429 TooManyRequests 1"},
		{engine.ErrSlowConsumer, "", "ERROR 429 TooManyRequests 1"},
		{engine.ErrExpired, at, "ERROR 410 Expired"},
		{engine.ErrSlowConsumer, at, "ERROR 429 TooManyRequests 1"},
		{engine.ErrNotReady, at, "ERROR 429 TooManyRequests 1"},
		{&engine.NotReadyError{Cause: store.ErrClosed, Final: true}, at, "ERROR 503 ServiceUnavailable"},
		{&engine.NotReadyError{Cause: store.ErrClosed, Final: true}, initial, "ERROR 429 TooManyRequests 1"},
		{errors.New("unplugged"), at, "ERROR 500 ServerTimeout 2"},
		{&usercode.PanicError{Func: "Column.Value", Value: "odd"}, at, "ERROR 500 InternalError"},
		{engine.ErrDeadline, at, ""},
		{engine.ErrEngineClosed, at, ""},
		{engine.ErrStopped, at, ""},
	} {
		fault = c.fault
		w := s.watch(gadgets + "?watch=1" + c.start)
		f, told := w.next()
		got := ""
		if told {
			got = f.Type + " " + f.str("code") + " " + f.str("reason")
			if after := f.str("details.retryAfterSeconds"); after != "<nil>" && after != "<none>" {
				got += " " + after
			}
			_, told = w.next()
		}
		require.Equal(t, c.want, got, "%v at %s", c.fault, cmp.Or(c.start, "the beginning"))
		require.False(t, told, "that is the end")
	}
}

// A generated name that is taken again and again may be free later.
func TestErrors_OfGeneratedNames(t *testing.T) {
	s := newServer(t, func(w *registry.Config[Widget], _ *serve.Config) {
		w.Strategy.Prepare = func(_ context.Context, w, _ *Widget) { w.Name = "always-this" }
	})
	const generated = `{"metadata":{"generateName":"x-"},"spec":{"size":1}}`
	require.Equal(t, 201, s.do("POST", inDefault, generated).code)
	a := s.do("POST", inDefault, generated)
	require.Equal(t, "409 AlreadyExists 1 1", strings.Join([]string{fmt.Sprint(a.code), a.str("reason"), a.str("details.retryAfterSeconds"), a.header.Get("Retry-After")}, " "))
}

// Fuse is a kind whose encoding panics while it is blown, and ends its goroutine while it is cut.
type Fuse struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              FuseSpec `json:"spec"`
}

type FuseSpec struct{ Blown, Cut, Odd bool }

func (f FuseSpec) MarshalJSON() ([]byte, error) {
	if f.Blown {
		panic("it is blown")
	}
	if f.Cut {
		runtime.Goexit()
	}
	if f.Odd {
		return nil, errors.New("it is odd")
	}
	return []byte(`{}`), nil
}

// An encoding that panics is an error for every reader, not only for the first.
func TestErrors_OfEncodings(t *testing.T) {
	fuses, err := registry.New(registry.Config[Fuse]{Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Fuse"}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, fuses.Close()) })
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) { c.Resources = []serve.Provider{fuses} })
	const path = "/apis/example.com/v1/namespaces/default/fuses"
	at := s.do("POST", path, `{"metadata":{"name":"a"}}`).str("metadata.resourceVersion")
	w := s.watch(path + "?watch=1&resourceVersion=" + at)
	require.Equal(t, 500, s.do("POST", path, `{"metadata":{"name":"b"},"spec":{"Blown":true}}`).code)
	f, _ := w.next()
	require.Equal(t, "ERROR 500 InternalError", f.Type+" "+f.str("code")+" "+f.str("reason"))
	for range 2 {
		a := s.get(path + "/b")
		require.Equal(t, "500 InternalError", fmt.Sprintf("%d %s", a.code, a.str("reason")), a.body)
		require.Contains(t, a.str("message"), "it is blown")
	}
	require.Equal(t, 200, s.get(path+"/a").code)
	odd := s.do("POST", path, `{"metadata":{"name":"d"},"spec":{"Odd":true}}`)
	require.Equal(t, "500 InternalError", fmt.Sprintf("%d %s", odd.code, odd.str("reason")), odd.body)
	require.Contains(t, odd.str("message"), "it is odd")
	require.Empty(t, odd.header.Get("Retry-After"), "it has been created")

	_, err = fuses.Create(t.Context(), Fuse{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "default"}, Spec: FuseSpec{Cut: true}}, registry.WriteOptions{})
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "http://localhost"+path+"/c", nil))
	}()
	<-ended
	a := s.get(path + "/c")
	require.Equal(t, 500, a.code, a.body)
	require.Contains(t, a.str("message"), "Goexit")
}
