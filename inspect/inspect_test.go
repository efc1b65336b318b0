package inspect_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/watchmill/watchmill/clock/clocktest"
	"github.com/watchmill/watchmill/controller"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/inspect"
	"github.com/watchmill/watchmill/usercode"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type pod struct{ Name string }

// newPods returns an engine on a host of its own, with a watch that is never read, and
// one that has ended.
func newPods(t testing.TB) (*engine.Host, *engine.Engine[pod]) {
	host, err := engine.NewHost(engine.HostConfig{})
	require.NoError(t, err)
	gone := make(chan struct{})
	pods, err := engine.New(engine.Config[pod]{
		Key: func(p pod) string { return p.Name }, Name: "pods", Host: host, FirstRevision: 1,
		OnEnd: func(end engine.WatchEnd) {
			if end.Name == "<b>gone</b>" {
				close(gone)
			}
		},
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, pods.Close())
		require.NoError(t, host.Close())
	})
	_, err = pods.Watch(t.Context(), engine.WatchOptions{Name: "stuck", Prefix: "a"})
	require.NoError(t, err)
	ended, err := pods.Watch(t.Context(), engine.WatchOptions{Name: "<b>gone</b>"})
	require.NoError(t, err)
	ended.Stop()
	<-gone
	o, err := pods.Create(t.Context(), pod{"a/b"})
	require.NoError(t, err)
	require.NoError(t, pods.WaitForRevision(t.Context(), o.Revision))
	// The actors publish the Reflector's phase and the ends of watches after their turns.
	for pods.Stats().Source.Phase.String() != "watching" || len(host.Engines()[0].Ends()) == 0 {
		runtime.Gosched()
	}
	return host, pods
}

func Example() {
	host, err := engine.NewHost(engine.HostConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer host.Close()
	pods, err := engine.New(engine.Config[pod]{Key: func(p pod) string { return p.Name }, Name: "pods", Host: host})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pods.Close()

	mux := http.NewServeMux()
	mux.Handle("/debug/watchmill/", inspect.Handler(host))
	server := httptest.NewServer(mux)
	defer server.Close()
	answer, err := server.Client().Get(server.URL + "/debug/watchmill/state")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer answer.Body.Close()
	var state inspect.State
	err = json.NewDecoder(answer.Body).Decode(&state)
	fmt.Println(answer.StatusCode, state.Engines[0].Name, err)
	// Output: 200 pods <nil>
}

// The page of a service that has a controller.
func ExampleOptions() {
	pods, err := engine.New(engine.Config[pod]{Key: func(p pod) string { return p.Name }, Name: "pods"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pods.Close()
	scheduler, err := controller.New(controller.Config[pod]{
		Source: pods.Source(), Host: pods.Host(), Name: "scheduler",
		Reconcile: func(context.Context, string, *engine.Object[pod]) (controller.Result, error) {
			return controller.Result{}, nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer scheduler.Close()
	shown := inspect.Options{
		Engines:     []*engine.Host{pods.Host()},
		Informers:   []informer.Observed{scheduler.Informer()},
		Controllers: []controller.Observed{scheduler},
	}
	server, err := shown.Listen("127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	state := shown.State() // what the page shows
	fmt.Println(state.Engines[0].Name, state.Informers[0].Name, state.Controllers[0].Name)
	// Output: pods scheduler scheduler
}

func ExampleListen() {
	host, err := engine.NewHost(engine.HostConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer host.Close()
	server, err := inspect.Listen("127.0.0.1:0", host)
	if err != nil {
		fmt.Println(err)
		return
	}
	answer, err := http.Get(server.URL())
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = answer.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	fmt.Println(answer.Status, server.Close())
	// Output: 200 OK <nil>
}

// A program shows the page until it is told to end.
func ExampleListenAndServe() {
	host, err := engine.NewHost(engine.HostConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer host.Close()
	ctx, stop := context.WithCancel(context.Background())
	stop() // a program would wait for a signal
	fmt.Println(inspect.ListenAndServe(ctx, "127.0.0.1:0", host))
	// Output: <nil>
}

// get asks a handler as a browser on this machine would.
func get(h http.Handler, method, url string) *http.Response {
	return getFrom("127.0.0.1:50000", h, method, url)
}

// getFrom asks a handler as a client at that address would.
func getFrom(remote string, h http.Handler, method, url string) *http.Response {
	answer, request := httptest.NewRecorder(), httptest.NewRequest(method, url, nil)
	request.RemoteAddr = remote
	h.ServeHTTP(answer, request)
	return answer.Result()
}

func TestState_ShowsTheSlowWatch(t *testing.T) {
	host, _ := newPods(t)
	clocktest.Tick()
	answer := get(inspect.Handler(host), http.MethodGet, "http://localhost:6061/debug/watchmill/state")
	require.Equal(t, http.StatusOK, answer.StatusCode)
	require.Equal(t, "application/json", answer.Header.Get("Content-Type"))
	var s inspect.State
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&s))
	require.Len(t, s.Engines, 1)
	e := s.Engines[0]
	require.Equal(t, "pods", e.Name)
	require.True(t, e.Cached && e.Ready)
	require.Equal(t, engine.Revision(2), e.Revision)
	require.Equal(t, 1, e.Objects)
	require.Positive(t, e.StateBytes)
	require.Equal(t, "watching", e.Source.Phase)
	require.Len(t, e.Watches, 1)
	w := e.Watches[0]
	require.Equal(t, []string{"stuck", `prefix "a"`, "park"}, []string{w.Name, w.Selector, w.Policy})
	require.Equal(t, uint64(1), w.Lag)
	require.Positive(t, w.BehindSeconds)
	require.Len(t, e.Ends, 1)
	require.Equal(t, []string{"<b>gone</b>", "stopped"}, []string{e.Ends[0].Name, e.Ends[0].Reason})
	var names []string
	for _, a := range s.Actors {
		names = append(names, a.Name)
	}
	require.Subset(t, names, []string{"pods", "pods/dispatcher", "pods/reflector", "pods/watchCache"})
}

// Engines may have one name, and hosts one seed. What tells an engine from the others is the same in each
// state, whichever of them end.
func TestState_TellsEnginesOfOneNameApart(t *testing.T) {
	var hosts []*engine.Host
	var engines []*engine.Engine[pod]
	for range 2 {
		host, err := engine.NewHost(engine.HostConfig{Seed: 7})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, host.Close()) })
		hosts = append(hosts, host)
		for range 2 {
			pods, err := engine.New(engine.Config[pod]{Key: func(p pod) string { return p.Name }, Name: "pods", Host: host})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, pods.Close()) })
			engines = append(engines, pods)
		}
	}
	ids := func() (all []string) {
		for _, e := range inspect.StateOf(hosts...).Engines {
			require.Equal(t, "pods", e.Name)
			all = append(all, e.ID)
		}
		return all
	}
	before := ids()
	require.Len(t, before, 4)
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(before))), 4, "%v", before)
	require.NoError(t, engines[0].Close())
	require.NoError(t, engines[2].Close())
	require.Equal(t, []string{before[1], before[3]}, ids())
}

func TestState_HasABoundedNumberOfWatches(t *testing.T) {
	host, pods := newPods(t)
	for range inspect.MaxWatches + 20 {
		_, err := pods.Watch(t.Context(), engine.WatchOptions{})
		require.NoError(t, err)
	}
	e := inspect.StateOf(host).Engines[0]
	require.Len(t, e.Watches, inspect.MaxWatches)
	require.Equal(t, "stuck", e.Watches[0].Name)
	require.Equal(t, int64(inspect.MaxWatches+21), e.Running)
}

func TestHandler_AnswersNoOtherHost(t *testing.T) {
	host, _ := newPods(t)
	h := inspect.Options{Engines: []*engine.Host{host}, Hosts: []string{"Debug.Example.com"}}.Handler()
	for url, want := range map[string]int{
		"http://localhost/": 200, "http://LOCALHOST:80/": 200, "http://127.0.0.1:6061/": 200, "http://[::1]:6061/state": 200, "http://127.8.8.8/": 200,
		"http://debug.example.com:8080/": 200, "http://evil.example.com/state": 403, "http://10.0.0.1/": 403,
		"http://localhost.evil.example.com/events": 403, "http://127.0.0.1.evil.example.com/": 403,
	} {
		require.Equal(t, want, get(h, http.MethodGet, url).StatusCode, url)
	}
}

// A client writes into the Host header what it likes.
func TestHandler_AnswersNoOtherMachine(t *testing.T) {
	host, _ := newPods(t)
	for remote, want := range map[string]int{
		"127.0.0.1:50000": 200, "[::1]:50000": 200, "[::ffff:127.0.0.1]:50000": 200, "@": 200, "": 200,
		"10.0.0.7:50000": 403, "[2001:db8::7]:50000": 403, "[fe80::1%eth0]:50000": 403,
		// Middleware that takes the address of a proxy's header leaves out the port.
		"127.0.0.1": 200, "::1": 200, "10.0.0.7": 403, "2001:db8::7": 403, "[2001:db8::7]": 403, "fe80::1%eth0": 403, "unknown": 403,
		"/run/debug.sock": 200,
	} {
		answer := getFrom(remote, inspect.Handler(host), http.MethodGet, "http://localhost/state")
		require.Equal(t, want, answer.StatusCode, remote)
	}
	named := inspect.Options{Engines: []*engine.Host{host}, Hosts: []string{"debug.example.com"}}.Handler()
	require.Equal(t, http.StatusOK, getFrom("10.0.0.7:50000", named, http.MethodGet, "http://debug.example.com/").StatusCode)
	require.Equal(t, http.StatusForbidden, getFrom("10.0.0.7:50000", named, http.MethodGet, "http://localhost/").StatusCode)
}

func TestHandler_OnlyReads(t *testing.T) {
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions} {
		answer := get(inspect.Handler(), method, "http://localhost/state")
		require.Equal(t, http.StatusMethodNotAllowed, answer.StatusCode)
		require.Equal(t, "GET, HEAD", answer.Header.Get("Allow"))
	}
	require.Equal(t, http.StatusOK, get(inspect.Handler(), http.MethodHead, "http://localhost/events").StatusCode, "which ends at once")
}

func TestPage_RunsItsOwnScriptOnly(t *testing.T) {
	var nonces []string
	for range 2 {
		answer := get(inspect.Handler(), http.MethodGet, "http://localhost/debug/watchmill")
		policy := answer.Header.Get("Content-Security-Policy")
		_, after, ok := strings.Cut(policy, "script-src 'nonce-")
		require.True(t, ok, policy)
		nonce, _, _ := strings.Cut(after, "'")
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.Equal(t, 2, strings.Count(string(text), `nonce="`+nonce+`"`))
		require.NotContains(t, string(text), "NONCE")
		require.Contains(t, policy, "default-src 'none'")
		require.Contains(t, policy, "frame-ancestors 'none'")
		require.NotContains(t, policy, "unsafe")
		require.Equal(t, "nosniff", answer.Header.Get("X-Content-Type-Options"))
		for _, foreign := range []string{"http://", "https://", "innerHTML", "eval("} {
			rest := strings.ReplaceAll(string(text), "http://www.w3.org/2000/svg", "")
			require.NotContains(t, rest, foreign)
		}
		nonces = append(nonces, nonce)
	}
	require.NotEqual(t, nonces[0], nonces[1])
}

func TestEvents_AreStates(t *testing.T) {
	host, pods := newPods(t)
	server, err := inspect.Listen("localhost:0", host)
	require.NoError(t, err)
	defer func() { require.NoError(t, server.Close()) }()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL()+"events", nil)
	require.NoError(t, err)
	answer, err := client.Do(request)
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Equal(t, "text/event-stream", answer.Header.Get("Content-Type"))
	require.Equal(t, "no", answer.Header.Get("X-Accel-Buffering"), "a proxy passes each on at once")
	require.Equal(t, "no-store, no-transform", answer.Header.Get("Cache-Control"), "nor does it compress them")
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	next := func() (s inspect.State) {
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				require.NoError(t, json.Unmarshal([]byte(data), &s))
				return s
			}
		}
		t.Fatal("the stream has ended")
		return s
	}
	require.Equal(t, engine.Revision(2), next().Engines[0].Revision)
	o, err := pods.Create(t.Context(), pod{"c"})
	require.NoError(t, err)
	require.NoError(t, pods.WaitForRevision(t.Context(), o.Revision))
	seen := next().Engines[0].Revision
	for seen < o.Revision { // a state that was taken before
		seen = next().Engines[0].Revision
	}
	require.Equal(t, o.Revision, seen)
}

func TestState_ShowsInformers(t *testing.T) {
	host, pods := newPods(t)
	mirror, err := informer.New(informer.Config[pod]{Source: pods.Source(), Host: host, Name: "mirror"})
	require.NoError(t, err)
	defer func() { require.NoError(t, mirror.Close()) }()
	called, hold := make(chan struct{}), make(chan struct{})
	var once sync.Once
	_, err = mirror.Subscribe(func(informer.Notification[pod]) {
		once.Do(func() { close(called) })
		<-hold
	}, informer.HandlerOptions{Name: "stuck"})
	require.NoError(t, err)
	defer close(hold)
	<-called
	options := inspect.Options{Informers: []informer.Observed{mirror}}
	var state inspect.State
	require.NoError(t, json.NewDecoder(get(options.Handler(), "GET", "http://localhost/state").Body).Decode(&state))
	require.Len(t, state.Informers, 1)
	shown := state.Informers[0]
	require.Equal(t, []inspect.InformerHandler{{Name: "stuck", Policy: "merge", Lag: 1, Called: true}}, shown.Handlers)
	require.Equal(t, [3]any{"mirror", 1, 1}, [3]any{shown.Name, shown.Objects, shown.Running})
	require.Equal(t, mirror.Revision(), shown.Revision)
	require.NotNil(t, inspect.StateOf(host).Informers, "a list in JSON, of none")
	require.PanicsWithError(t, "invalid configuration: Informers[0] is nil; give one that informer.New has returned", func() {
		inspect.Options{Informers: []informer.Observed{nil}}.Handler()
	})
	require.ErrorIs(t, inspect.Options{Informers: []informer.Observed{nil}}.ListenAndServe(t.Context(), "127.0.0.1:0"), usercode.ErrConfig)
}

func TestState_ShowsControllers(t *testing.T) {
	host, pods := newPods(t)
	runs, hold := make(chan string, 2), make(chan struct{}) // both keys may be reconciled in the end
	c, err := controller.New(controller.Config[pod]{
		Source: pods.Source(), Host: host, Name: "scheduler",
		Reconcile: func(_ context.Context, key string, _ *engine.Object[pod]) (controller.Result, error) {
			runs <- key
			<-hold
			return controller.Result{}, nil
		},
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	defer close(hold)
	require.Equal(t, "a/b", <-runs)
	require.NoError(t, c.Enqueue("waits"))
	clocktest.Tick()
	options := inspect.Options{Engines: []*engine.Host{host}, Controllers: []controller.Observed{c}}
	var state inspect.State
	require.NoError(t, json.NewDecoder(get(options.Handler(), "GET", "http://localhost/state").Body).Decode(&state))
	require.Len(t, state.Engines, 1)
	require.Len(t, state.Controllers, 1)
	require.Positive(t, state.Controllers[0].LongestSeconds)
	state.Controllers[0].LongestSeconds = 0
	require.Equal(t, []inspect.Controller{{Name: "scheduler", Workers: 1, Queued: 1, Running: 1}}, state.Controllers)
	require.NotNil(t, inspect.StateOf(host).Controllers, "a list in JSON, of none")
	require.PanicsWithError(t, "invalid configuration: Controllers[1] is nil; give one that controller.New has returned", func() {
		inspect.Options{Controllers: []controller.Observed{c, nil}}.Handler()
	})
}

// The panic is where the host is given, and not in a request.
func TestHandler_RefusesAHostThatIsNilOrZero(t *testing.T) {
	host, err := engine.NewHost(engine.HostConfig{})
	require.NoError(t, err)
	defer host.Close()
	for _, none := range []*engine.Host{nil, {}} {
		require.PanicsWithError(t, "invalid configuration: Engines[1] is nil or a zero Host; give one that engine.NewHost has returned",
			func() { inspect.Handler(host, none) })
		_, err := inspect.Listen("127.0.0.1:0", none)
		require.ErrorIs(t, err, usercode.ErrConfig)
		require.ErrorContains(t, err, "Engines[0] is nil or a zero Host")
	}
}

func TestListen_IsForThisMachineOnly(t *testing.T) {
	for _, addr := range []string{":6061", "0.0.0.0:0", "[::]:0", "10.0.0.1:80", "example.com:80", "nonsense", ""} {
		_, err := inspect.Listen(addr)
		require.ErrorIs(t, err, usercode.ErrConfig, addr)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, inspect.ListenAndServe(ctx, "127.0.0.1:0"))
	s, err := inspect.Listen("127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
}
