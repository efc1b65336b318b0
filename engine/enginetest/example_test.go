package enginetest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
)

// exampleTest stands for the *testing.T of a test. It prints how the test fails.
type exampleTest struct {
	testing.TB
	cleanups []func()
}

func newExampleTest() *exampleTest { return &exampleTest{} }

func (t *exampleTest) Helper()                        {}
func (t *exampleTest) Context() context.Context       { return context.Background() }
func (t *exampleTest) Setenv(string, string)          {}
func (t *exampleTest) Cleanup(f func())               { t.cleanups = append(t.cleanups, f) }
func (t *exampleTest) Fatalf(format string, a ...any) { t.Errorf(format, a...) }
func (t *exampleTest) Errorf(format string, a ...any) { fmt.Printf(format+"\n", a...) }

// end is the end of the test.
func (t *exampleTest) end() {
	for _, f := range t.cleanups {
		f()
	}
}

func Example() {
	t := newExampleTest() // in a test: func TestPods(t *testing.T)
	defer t.end()

	e := enginetest.New(t, pods())
	w := e.Watch(engine.WatchOptions{Labels: "app=web"})
	e.Create(pod{Name: "a", App: "web"})
	e.Create(pod{Name: "b", App: "db"})
	enginetest.ExpectExactly(t, w, enginetest.Added(pod{Name: "a", App: "web"}))

	e.Delete("a")
	enginetest.ExpectNothing(t, w) // wrong
	// Output:
	// enginetest: the events are not those expected:
	//   + DELETED a@4 {Name:a App:web N:0}
}

func ExampleNew() {
	t := newExampleTest()
	e := enginetest.New(t, pods())
	leaked := make(chan struct{})
	e.Host().Clock().AfterFunc(time.Hour, func() { close(leaked) })
	t.end()
	// Output:
	// enginetest: 1 timers are left on the host's clock, but no actor: stop what AfterFunc returned before the engine is closed
}

func ExampleDeterministic() {
	t := newExampleTest()
	defer t.end()
	e := enginetest.NewWith(t, pods(), enginetest.Deterministic(42))
	w := e.Watch(engine.WatchOptions{Timeout: time.Hour})
	e.Advance(time.Hour)
	enginetest.ExpectEnd(t, w, engine.ErrDeadline)
	fmt.Println(e.Host().Clock().Now().Format(time.TimeOnly))
	// Output:
	// 01:00:00
}

func ExampleExpect() {
	t := newExampleTest()
	defer t.end()
	e := enginetest.New(t, pods())
	w := e.Watch(engine.WatchOptions{})
	for n := range 10 {
		e.Put(pod{Name: "a", N: n})
	}
	enginetest.Expect(t, w, enginetest.Keyed(engine.Added, "a"), enginetest.Modified(pod{Name: "a", N: 9}))
	enginetest.Expect(t, w, enginetest.Bookmark())
	// Output:
	// enginetest: BOOKMARK did not come:
	//   - BOOKMARK
}

func ExampleExpectEnd() {
	t := newExampleTest()
	defer t.end()
	e := enginetest.New(t, pods())
	w := e.Watch(engine.WatchOptions{Name: "web"})
	w.Stop()
	enginetest.ExpectEnd(t, w, engine.ErrStopped)
	fmt.Println(w.Err())
	// Output:
	// web: watch stopped
}

func ExampleSource() {
	t := newExampleTest()
	defer t.end()
	cfg := pods()
	source := enginetest.NewSource(cfg)
	cfg.Backend = source
	e := enginetest.NewWith(t, cfg, enginetest.Deterministic(1))
	w := e.Watch(engine.WatchOptions{})

	source.ResetWatches(nil)
	source.FailWatch(3, nil)
	_, _ = source.Add(pod{Name: "a"}) // while the watch is broken
	e.Advance(time.Minute)
	enginetest.ExpectExactly(t, w, enginetest.Added(pod{Name: "a"}))
	fmt.Println("calls of Watch:", source.WatchCalls())
	// Output:
	// calls of Watch: 5
}

// In storage that other programs share, revisions have gaps, so a change that its watch has left out
// is not missed.
func ExampleNewSourceWith() {
	t := newExampleTest()
	defer t.end()
	cfg := pods()
	source := enginetest.NewSourceWith(cfg, enginetest.SourceOptions{Sparse: true})
	cfg.Backend = source
	e := enginetest.NewWith(t, cfg, enginetest.Deterministic(1))
	w := e.Watch(engine.WatchOptions{})

	fmt.Println(source.Hide(func() error { _, err := source.Add(pod{Name: "a"}); return err }))
	_, _ = source.Add(pod{Name: "b"})
	enginetest.ExpectExactly(t, w, enginetest.Added(pod{Name: "b"}))
	fmt.Println("lists:", source.ListCalls())
	// Output:
	// <nil>
	// lists: 1
}

func ExampleSource_Stall() {
	t := newExampleTest()
	defer t.end()
	cfg := pods()
	source := enginetest.NewSource(cfg)
	cfg.Backend = source
	e := enginetest.NewWith(t, cfg, enginetest.Deterministic(1))
	w := e.Watch(engine.WatchOptions{})

	source.Stall()
	_, _ = source.Add(pod{Name: "a"})
	e.Advance(time.Second)
	fmt.Println("revision while it is silent:", e.Engine().Revision())
	source.Resume()
	enginetest.ExpectExactly(t, w, enginetest.Added(pod{Name: "a"}))
	fmt.Println("afterwards:", e.Engine().Revision())
	// Output:
	// revision while it is silent: 1
	// afterwards: 2
}

func ExampleDeleted() {
	t := newExampleTest()
	defer t.end()
	e := enginetest.New(t, pods())
	e.Create(pod{Name: "a", N: 1})
	w := e.Watch(engine.WatchOptions{InitialState: true, Linearizable: true, Bookmarks: true})
	e.Delete("a")
	enginetest.ExpectExactly(t, w,
		enginetest.Added(pod{Name: "a", N: 1}).Marked(engine.Initial),
		enginetest.InitialEnd(),
		enginetest.Deleted(pod{Name: "a", N: 1}).At(3),
	)
	fmt.Println(w.Revision())
	// Output:
	// 3
}

func ExampleSource_Hide() {
	t := newExampleTest()
	defer t.end()
	cfg := pods()
	source := enginetest.NewSource(cfg)
	cfg.Backend = source
	e := enginetest.NewWith(t, cfg, enginetest.Deterministic(1))
	w := e.Watch(engine.WatchOptions{})

	_ = source.Hide(func() error {
		_, err := source.Add(pod{Name: "a"})
		return err
	})
	e.Advance(time.Minute) // the engine notices, lists again and compares
	enginetest.ExpectExactly(t, w, enginetest.Added(pod{Name: "a"}).Marked(engine.Synthetic))
	fmt.Println("lists:", source.ListCalls())
	// Output:
	// lists: 2
}

func ExampleCheckLeaks() {
	t := newExampleTest()
	host, err := engine.NewHost(engine.HostConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer host.Close()
	topic := engine.NewTopicWith[string](engine.TopicOptions{Host: host, Name: "news"})
	enginetest.CheckLeaks(t, host)
	topic.Close()
	enginetest.CheckLeaks(t, host) // says nothing
	// Output:
	// enginetest: 4 actors are left on the host: news, news/dispatcher, news/reflector, news/watchCache: close the engines and topics that they belong to
}
