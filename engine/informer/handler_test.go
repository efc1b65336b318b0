package informer_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

func TestHandlers_StartWithTheStateAndGoOn(t *testing.T) {
	r := newFixture(t, nil)
	early, _ := r.subscribe()
	r.write(pod{Name: "a"})
	r.write(pod{Name: "b"})
	r.executor.Run()
	require.Equal(t, []string{"ADDED a@2 initial", "ADDED b@3 initial"}, early.recorded())

	r.put(pod{Name: "a", N: 1})
	require.Equal(t, []string{"MODIFIED a@2→4 change"}, early.recorded())

	late, handle := r.subscribe()
	require.False(t, handle.HasSynced())
	require.NoError(t, handle.WaitSynced(t.Context()))
	require.True(t, handle.HasSynced())
	require.Equal(t, []string{"ADDED a@4 replay", "ADDED b@3 replay"}, late.recorded())

	r.remove("b")
	require.Equal(t, []string{"DELETED b@5 change"}, late.recorded())
	require.Equal(t, []string{"DELETED b@5 change"}, early.recorded())
	require.Empty(t, r.reported())
}

func TestHandlers_ComeAndGoDuringManyEvents(t *testing.T) {
	events, handlers := 30_000, 100
	if testing.Short() {
		events = 10_000
	}
	s, source := busy(t, nil)
	stays := newHistory()
	stayer, err := s.Subscribe(stays.handle, informer.HandlerOptions{})
	require.NoError(t, err)

	var adders, writer sync.WaitGroup
	done := make(chan struct{})
	for i := range handlers {
		adders.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 1))
			for {
				select {
				case <-done:
					return
				default:
				}
				comeAndGo(t, s, random)
			}
		})
	}
	var last store.Revision
	writer.Go(func() {
		last = churn(t, source, 1, events, 50)
		close(done)
	})
	writer.Wait()
	adders.Wait()
	require.NoError(t, s.WaitForRevision(t.Context(), last))
	require.NoError(t, stayer.Remove(t.Context(), informer.Drain))
	stays.checkState(t, s.Snapshot())
}

// comeAndGo adds a handler with random options, and removes it in a random way.
func comeAndGo(t *testing.T, s *informer.SharedInformer[pod], random *rand.Rand) {
	h := newHistory()
	handle, err := s.Subscribe(h.handle, informer.HandlerOptions{Policy: informer.Policy(random.IntN(3)), Buffer: 1 + random.IntN(20)})
	if err != nil {
		t.Error(err)
		return
	}
	if random.IntN(2) == 0 {
		if err := handle.WaitSynced(context.Background()); err != nil {
			t.Error(err)
		}
	}
	if err := handle.Remove(context.Background(), informer.Removal(random.IntN(2))); err != nil {
		t.Error(err)
	}
	h.ended.Store(true)
	h.check(t)
}

// Handlers may be added at any time and from anywhere, and start with a state that
// their later notifications join up with.
func TestHandlers_AddedAtAnyTimeAndFromHandlers(t *testing.T) {
	r := newFixture(t, nil)
	r.source.FailList(1, nil)
	inner := newHistory()
	var added *informer.Registration
	outer := &recorder{before: func(n informer.Notification[pod]) {
		if added == nil {
			var err error
			added, err = r.Subscribe(inner.handle, informer.HandlerOptions{})
			require.NoError(t, err)
		}
	}}
	r.subscribeRecorder(outer)
	r.put(pod{Name: "a"})
	r.pass(time.Minute)
	r.put(pod{Name: "b"})
	r.remove("a")
	require.NoError(t, added.WaitSynced(t.Context()))
	inner.checkState(t, r.Snapshot())
}

// lineAfter returns the place that is that many lines further down.
func lineAfter(p usercode.Place, lines int) string {
	file, line, _ := strings.Cut(p.String(), ":")
	n, _ := strconv.Atoi(line)
	return file + ":" + strconv.Itoa(n+lines)
}

func TestHandlers_HaveNames(t *testing.T) {
	r := newFixture(t, nil)
	_, named := r.subscribe(informer.HandlerOptions{Name: "scheduler"})
	require.Equal(t, "scheduler", named.Name())
	place := usercode.Caller(0)
	first, err := r.Subscribe(func(informer.Notification[pod]) {}, informer.HandlerOptions{})
	require.NoError(t, err)
	second, err := r.AddEventHandler(informer.HandlerFuncs[pod]{}, informer.HandlerOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{lineAfter(place, 1), lineAfter(place, 3)}, []string{first.Name(), second.Name()})
	require.Equal(t, "pods", r.Name())
}

func TestHandlers_OneTwiceHasTwoRegistrations(t *testing.T) {
	r := newFixture(t, nil)
	l, first := r.subscribe()
	second := r.subscribeRecorder(l)
	r.put(pod{Name: "a"})
	require.Len(t, l.recorded(), 2)
	require.NoError(t, first.Remove(t.Context(), informer.Drop))
	r.put(pod{Name: "b"})
	require.Len(t, l.recorded(), 1)
	require.NoError(t, second.Remove(t.Context(), informer.Drop))
	r.put(pod{Name: "c"})
	require.Empty(t, l.recorded())
}

func TestHandlerFuncs_AndFilteringHandler(t *testing.T) {
	r := newFixture(t, nil)
	var lines []string
	onNode := func(o *informer.Object[pod]) bool { return o.Value.Node == "n1" }
	_, err := r.AddEventHandler(informer.FilteringHandler[pod]{Filter: onNode, Handler: informer.HandlerFuncs[pod]{
		AddFunc: func(o *informer.Object[pod], initial bool) {
			if initial {
				lines = append(lines, "initial")
			}
			lines = append(lines, "add "+o.Key)
		},
		UpdateFunc: func(_, o *informer.Object[pod]) { lines = append(lines, "update "+o.Key) },
		DeleteFunc: func(gone informer.Deleted[pod]) { lines = append(lines, "delete "+gone.Key) },
	}}, informer.HandlerOptions{})
	require.NoError(t, err)
	_, err = r.AddEventHandler(informer.FilteringHandler[pod]{Filter: onNode}, informer.HandlerOptions{})
	require.ErrorIs(t, err, informer.ErrNilHandler)
	_, err = r.AddEventHandler(informer.FilteringHandler[pod]{Handler: informer.FilteringHandler[pod]{Filter: onNode}}, informer.HandlerOptions{})
	require.ErrorIs(t, err, informer.ErrNilHandler, "a filter in a filter")
	_, err = r.AddEventHandler(&informer.FilteringHandler[pod]{Filter: onNode}, informer.HandlerOptions{})
	require.ErrorIs(t, err, informer.ErrNilHandler, "a pointer")
	_, err = r.AddEventHandler((*informer.FilteringHandler[pod])(nil), informer.HandlerOptions{})
	require.ErrorIs(t, err, informer.ErrNilHandler, "a nil pointer")
	_, err = r.AddEventHandler(informer.HandlerFuncs[pod]{}, informer.HandlerOptions{}) // is safe
	require.NoError(t, err)
	r.put(pod{Name: "a", Node: "n1"})
	r.put(pod{Name: "b", Node: "n2"})
	r.put(pod{Name: "b", Node: "n1"})
	r.put(pod{Name: "b", Node: "n1", N: 1})
	r.put(pod{Name: "b", Node: "n2"})
	r.remove("b")
	r.remove("a")
	require.Equal(t, []string{"initial", "add a", "add b", "update b", "delete b", "delete a"}, lines)
	require.Empty(t, r.reported())
}

// A handler that calls a filter itself passes no more than objects, so that their states decide.
func TestFilteringHandler_CalledByAHandlerGoesByTheStates(t *testing.T) {
	var lines []string
	f := informer.FilteringHandler[pod]{
		Filter: func(o *informer.Object[pod]) bool { return o.Value.Node == "n1" },
		Handler: informer.HandlerFuncs[pod]{
			AddFunc:    func(o *informer.Object[pod], _ bool) { lines = append(lines, "add "+o.Key) },
			UpdateFunc: func(_, o *informer.Object[pod]) { lines = append(lines, "update "+o.Key) },
			DeleteFunc: func(gone informer.Deleted[pod]) { lines = append(lines, "delete "+gone.Key) },
		},
	}
	on := func(key, node string) *informer.Object[pod] {
		o := &informer.Object[pod]{Value: pod{Name: key, Node: node}}
		o.Key = key
		return o
	}
	for _, node := range []string{"n1", "n2"} {
		f.OnAdd(on("added on "+node, node), false)
		f.OnDelete(informer.Deleted[pod]{Key: "gone on " + node, Last: on("gone", node), Known: true})
		for _, before := range []string{"n1", "n2"} {
			f.OnUpdate(on(before+" to "+node, before), on(before+" to "+node, node))
		}
	}
	f.OnDelete(informer.Deleted[pod]{Key: "unknown"})
	require.Equal(t, []string{
		"add added on n1", "delete gone on n1", "update n1 to n1", "add n2 to n1", "delete n1 to n2", "delete unknown",
	}, lines)
}

// What the handler behind a filter was given decides what it is told of, though it was slow and
// its changes were merged: an object may have changed before its deletion.
func TestFilteringHandler_ThatIsSlowTellsOfTheEndOfWhatItHasPassedOn(t *testing.T) {
	onNode := func(o *informer.Object[pod]) bool { return o.Value.Node == "n1" }
	for name, filtered := range map[string]func(informer.EventHandler[pod]) informer.EventHandler[pod]{
		"value": func(h informer.EventHandler[pod]) informer.EventHandler[pod] {
			return informer.FilteringHandler[pod]{onNode, h}
		},
		"pointer": func(h informer.EventHandler[pod]) informer.EventHandler[pod] {
			return &informer.FilteringHandler[pod]{onNode, h}
		},
		"nested": func(h informer.EventHandler[pod]) informer.EventHandler[pod] {
			return informer.FilteringHandler[pod]{nil, informer.FilteringHandler[pod]{onNode, h}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, source := busy(t, nil)
			entered, open := make(chan struct{}), make(chan struct{})
			var lines []string
			handle, err := s.AddEventHandler(filtered(informer.HandlerFuncs[pod]{
				AddFunc: func(o *informer.Object[pod], _ bool) {
					if lines = append(lines, "add "+o.Key); o.Key == "last" {
						close(entered)
						<-open
					}
				},
				UpdateFunc: func(_, o *informer.Object[pod]) { lines = append(lines, "update "+o.Key) },
				DeleteFunc: func(gone informer.Deleted[pod]) { lines = append(lines, "delete "+gone.Key) },
			}), informer.HandlerOptions{Buffer: 1})
			require.NoError(t, err)
			require.NoError(t, handle.WaitSynced(t.Context()))
			for _, p := range []pod{{Name: "a", Node: "n1"}, {Name: "b", Node: "n2"}, {Name: "last", Node: "n1"}} {
				_, err := source.Add(p)
				require.NoError(t, err)
			}
			<-entered
			for _, p := range []pod{{Name: "a", Node: "n2"}, {Name: "b", Node: "n1"}} {
				_, err := source.Modify(p)
				require.NoError(t, err)
			}
			for _, key := range []string{"a", "b"} {
				rev, err := source.Delete(key)
				require.NoError(t, err)
				require.NoError(t, s.WaitForRevision(t.Context(), rev))
			}
			later, err := s.AddEventHandler(informer.HandlerFuncs[pod]{}, informer.HandlerOptions{})
			require.NoError(t, err)
			require.NoError(t, later.WaitSynced(t.Context()), "what was stored before was queued for the slow one")
			close(open)
			require.NoError(t, handle.Remove(t.Context(), informer.Drain))
			require.Equal(t, []string{"add a", "add last", "delete a"}, lines)
		})
	}
}

// What the handler behind a filter is told adds up to what the filter accepts, whatever was left
// out: nothing is added twice, and nothing is changed or deleted that was not added.
func TestFilteringHandler_TellsOfAllThatItAccepts(t *testing.T) {
	onNode := func(o *informer.Object[pod]) bool { return o.Value.Node == "n1" }
	for _, policy := range []informer.Policy{informer.Merge, informer.Resnapshot, informer.Block} {
		t.Run(policy.String(), func(t *testing.T) {
			s, source := busy(t, nil)
			seen := newHistory()
			known := func(key string, want bool) {
				if (seen.known[key] != nil) != want {
					seen.fail("%s is known: %v", key, !want)
				}
				runtime.Gosched() // so that it is slower than the writer
			}
			handle, err := s.AddEventHandler(informer.FilteringHandler[pod]{Filter: onNode, Handler: informer.HandlerFuncs[pod]{
				AddFunc: func(o *informer.Object[pod], _ bool) {
					known(o.Key, false)
					seen.known[o.Key] = o
				},
				UpdateFunc: func(_, o *informer.Object[pod]) {
					known(o.Key, true)
					seen.known[o.Key] = o
				},
				DeleteFunc: func(gone informer.Deleted[pod]) {
					known(gone.Key, true)
					delete(seen.known, gone.Key)
				},
			}}, informer.HandlerOptions{Policy: policy, Buffer: 2})
			require.NoError(t, err)
			random := rand.New(rand.NewPCG(1, 2))
			var last store.Revision
			for n := range 5000 {
				p := pod{Name: fmt.Sprint("p", random.IntN(10)), Node: fmt.Sprint("n", random.IntN(2)), N: n + 1}
				if last, err = source.Modify(p); errors.Is(err, store.ErrNotFound) {
					last, err = source.Add(p)
				} else if random.IntN(3) == 0 {
					last, err = source.Delete(p.Name)
				}
				require.NoError(t, err)
			}
			require.NoError(t, s.WaitForRevision(t.Context(), last))
			require.NoError(t, handle.Remove(t.Context(), informer.Drain))
			seen.check(t)
			var accepted []string
			for o := range s.Snapshot().All() {
				if onNode(o) {
					accepted = append(accepted, o.Key)
				}
			}
			require.ElementsMatch(t, accepted, slices.Collect(maps.Keys(seen.known)))
		})
	}
}

// Lag counts down with each notification, even of those that a handler was given together.
func TestLag_CountsTheNotificationBeingHandled(t *testing.T) {
	r := newFixture(t, nil)
	for _, name := range []string{"a", "b", "c"} {
		r.write(pod{Name: name})
	}
	var handle *informer.Registration
	var lags []int
	handle = r.subscribeRecorder(&recorder{before: func(informer.Notification[pod]) { lags = append(lags, handle.Lag()) }})
	r.executor.Run()
	require.Equal(t, []int{3, 2, 1}, lags)
	require.Zero(t, handle.Lag())
}

func TestHandlers_RefusedOptionsNameTheField(t *testing.T) {
	r := newFixture(t, nil)
	_, err := r.AddEventHandler(nil, informer.HandlerOptions{})
	require.ErrorIs(t, err, informer.ErrNilHandler)
	_, err = r.Subscribe(nil, informer.HandlerOptions{})
	require.ErrorIs(t, err, informer.ErrNilHandler)
	for field, opts := range map[string]informer.HandlerOptions{
		"HandlerOptions.Buffer":  {Buffer: -1},
		"HandlerOptions.Resync":  {Resync: -1},
		"HandlerOptions.Policy":  {Policy: 9},
		"HandlerOptions.OnPanic": {OnPanic: 9},
	} {
		_, err := r.AddEventHandler(informer.HandlerFuncs[pod]{}, opts)
		require.ErrorIs(t, err, informer.ErrConfig)
		require.ErrorContains(t, err, field)
	}
}

func TestDeleted_HasKeyAndLastState(t *testing.T) {
	r := newFixture(t, nil)
	var gone []informer.Deleted[pod]
	_, err := r.AddEventHandler(informer.HandlerFuncs[pod]{DeleteFunc: func(d informer.Deleted[pod]) { gone = append(gone, d) }}, informer.HandlerOptions{})
	require.NoError(t, err)
	r.put(pod{Name: "a", N: 7})
	rev := r.remove("a")
	require.Len(t, gone, 1)
	require.Equal(t, "a", gone[0].Key)
	require.True(t, gone[0].Known)
	require.False(t, gone[0].Stale)
	require.Equal(t, 7, gone[0].Last.Value.N)
	require.Equal(t, rev, gone[0].Last.Revision)
}

// A value that carries its revision has that of the deletion, as in a watch of the engine.
func TestDeleted_HasItsRevisionInTheValueToo(t *testing.T) {
	cfg := podConfig()
	cfg.SetRevision = func(p pod, rev engine.Revision) pod { p.N = int(rev); return p }
	source := enginetest.NewSourceWith(cfg, enginetest.SourceOptions{})
	r := newFixture(t, func(c *informer.Config[pod]) { c.Source = engine.SourceOf[pod](source) })
	require.NoError(t, r.source.Close())
	r.source = source
	var gone []informer.Deleted[pod]
	_, err := r.AddEventHandler(informer.HandlerFuncs[pod]{DeleteFunc: func(d informer.Deleted[pod]) { gone = append(gone, d) }}, informer.HandlerOptions{})
	require.NoError(t, err)
	r.put(pod{Name: "a"})
	rev := r.remove("a")
	require.Len(t, gone, 1)
	require.Equal(t, rev, gone[0].Last.Revision)
	require.EqualValues(t, rev, gone[0].Last.Value.N)
}
