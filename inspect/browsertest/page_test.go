//go:build browser

package browsertest

import (
	"context"
	_ "embed" // embeds the script that examines the page
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/controller"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/inspect"
)

//go:embed look.js
var look string

// seen is what look.js sees of the page.
type seen struct {
	// First is the first engine. Watches are the names in its table, from the top. Marked are
	// those that are marked as slow.
	First           string
	Watches, Marked []string
	// Behind is how far behind the first of them is, as shown.
	Behind string
	// Charts are those with a line of several points.
	Charts int
	// Faint are texts with less contrast than 4.5. Overflow says that the page is
	// wider than its window.
	Faint    []string
	Overflow bool
	Status   string
	Text     string
}

type pod struct {
	Name string
	N    int
}

// load runs engines under load until the test ends: watches of all kinds, one of
// them stuck in its handler, one ended by a panic.
func load(t *testing.T) *engine.Host {
	ctx, cancel := context.WithCancel(t.Context())
	host, err := engine.NewHost(engine.HostConfig{})
	require.NoError(t, err)
	pods, err := engine.New(engine.Config[pod]{Key: func(p pod) string { return p.Name }, Name: "pods", Host: host, Window: engine.Window{MaxEvents: 50_000}})
	require.NoError(t, err)
	orders := engine.NewTopicWith[int](engine.TopicOptions{Host: host, Name: "orders"})
	stuck := make(chan struct{})
	for _, name := range []string{"scheduler", "autoscaler", "audit"} {
		_, err := pods.Handle(ctx, engine.WatchOptions{Name: name}, func(engine.Event[pod]) {})
		require.NoError(t, err)
	}
	_, err = pods.Handle(ctx, engine.WatchOptions{Name: "billing", Prefix: "shop", Buffer: 10}, func(engine.Event[pod]) { <-stuck })
	require.NoError(t, err)
	clumsy, err := pods.Handle(ctx, engine.WatchOptions{Name: "clumsy"}, func(engine.Event[pod]) { panic("<script>oops</script>") })
	require.NoError(t, err)
	_, err = orders.SubscribeWith(ctx, engine.SubscribeOptions{Name: "mailer"}, func(int) {})
	require.NoError(t, err)
	var writers sync.WaitGroup
	writers.Go(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for n := 0; ctx.Err() == nil; n++ {
			_, _ = pods.Put(ctx, pod{[]string{"shop/web", "shop/db", "mail/in"}[n%3] + fmt.Sprint(n%50), n})
			_, _ = orders.Publish(ctx, n)
			<-tick.C
		}
	})
	<-clumsy.Done()
	t.Cleanup(func() {
		cancel()
		close(stuck)
		writers.Wait()
		require.NoError(t, pods.Close())
		require.NoError(t, orders.Close())
		require.NoError(t, host.Close())
	})
	return host
}

// browser is the headless browser that all tests share, a tab for each page.
var browser context.Context

func TestMain(m *testing.M) { os.Exit(withBrowser(m.Run)) }

// patience is how long anything may take on the slowest machine.
const patience = 5 * time.Minute

func withBrowser(do func() int) int {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.WSURLReadTimeout(patience))
	if path := os.Getenv("CHROME_PATH"); path != "" {
		options = append(options, chromedp.ExecPath(path))
	}
	allocated, free := chromedp.NewExecAllocator(context.Background(), options...)
	defer free()
	var end context.CancelFunc
	browser, end = chromedp.NewContext(allocated)
	defer end()
	if err := chromedp.Run(browser); err != nil {
		fmt.Fprintln(os.Stderr, "no browser to look with:", err)
		return 1
	}
	return do()
}

// complaints are what the console said, and what was asked of other sites.
type complaints struct {
	mu   sync.Mutex
	said []string
}

func (c *complaints) listen(ctx context.Context, own string) {
	chromedp.ListenTarget(ctx, func(event any) {
		c.mu.Lock()
		defer c.mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventConsoleAPICalled:
			c.said = append(c.said, fmt.Sprintf("console: %v", e.Args))
		case *runtime.EventExceptionThrown:
			c.said = append(c.said, e.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			c.said = append(c.said, e.Entry.Text)
		case *network.EventRequestWillBeSent:
			if !strings.HasPrefix(e.Request.URL, own) && e.Request.URL != "data:," {
				c.said = append(c.said, "request: "+e.Request.URL)
			}
		}
	})
}

func (c *complaints) all() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.said
}

// until waits until an expression is true on the page.
func until(expression string) chromedp.Action {
	return chromedp.Poll(expression, nil, chromedp.WithPollingTimeout(patience))
}

// show opens the page in a window and returns what there is to see once several
// states have come.
func show(t *testing.T, url, theme string, width int64) (s seen) {
	ctx, closeTab := chromedp.NewContext(browser)
	defer closeTab()
	ctx, expire := context.WithTimeout(ctx, patience)
	defer expire()
	var c complaints
	c.listen(ctx, url)
	var shot []byte
	require.NoError(t, chromedp.Run(ctx,
		log.Enable(), network.Enable(), runtime.Enable(),
		emulation.SetDeviceMetricsOverride(width, 900, 1, width < 600),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}),
		chromedp.Navigate(url),
		until(`document.querySelectorAll("polyline").length >= 6 && [...document.querySelectorAll("polyline")].every(l => l.getAttribute("points").split(" ").length >= 4)`),
		chromedp.Evaluate(look, &s),
		chromedp.FullScreenshot(&shot, 100),
	))
	if folder := os.Getenv("SHOTS"); folder != "" {
		require.NoError(t, os.WriteFile(filepath.Join(folder, fmt.Sprintf("inspect-%s-%d.png", theme, width)), shot, 0o600))
	}
	require.Empty(t, c.all())
	return s
}

func TestPage_HasTheStuckConsumerOnTop(t *testing.T) {
	server, err := inspect.Listen("127.0.0.1:0", load(t))
	require.NoError(t, err)
	defer func() { require.NoError(t, server.Close()) }()
	for _, theme := range []string{"light", "dark"} {
		for _, width := range []int64{1200, 390} {
			t.Run(fmt.Sprint(theme, " ", width), func(t *testing.T) {
				s := show(t, server.URL(), theme, width)
				require.Equal(t, "pods", s.First, "orders has no slow consumer")
				require.Len(t, s.Watches, 4)
				require.Equal(t, "billing", s.Watches[0])
				require.Equal(t, []string{"billing"}, s.Marked)
				require.Regexp(t, `^(\d+\.\d s|\d+ min)$`, s.Behind)
				require.Equal(t, 6, s.Charts, "three for each engine")
				require.Empty(t, s.Faint)
				require.False(t, s.Overflow)
				require.Contains(t, s.Status, "live")
				for _, text := range []string{"pods", "orders", "mailer", "clumsy", "panicked", "watching at", "1 stalled"} {
					require.Contains(t, s.Text, text)
				}
			})
		}
	}
}

// Informers and controllers are shown below the engines, with what waits for their handlers and workers.
func TestPage_ShowsInformersAndControllers(t *testing.T) {
	host := load(t)
	lamps, err := engine.New(engine.Config[pod]{Key: func(p pod) string { return p.Name }, Name: "lamps", Host: host})
	require.NoError(t, err)
	defer func() { require.NoError(t, lamps.Close()) }()
	runs, hold := make(chan struct{}, 2), make(chan struct{}) // both keys may be reconciled in the end
	switches, err := controller.New(controller.Config[pod]{
		Source: lamps.Source(), Host: host, Name: "switches",
		Reconcile: func(context.Context, string, *engine.Object[pod]) (controller.Result, error) {
			runs <- struct{}{}
			<-hold
			return controller.Result{}, nil
		},
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, switches.Close()) }()
	defer close(hold)
	require.NoError(t, switches.Enqueue("is reconciled"))
	<-runs
	require.NoError(t, switches.Enqueue("waits"))
	server, err := inspect.Options{
		Engines: []*engine.Host{host}, Informers: []informer.Observed{switches.Informer()}, Controllers: []controller.Observed{switches},
	}.Listen("127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, server.Close()) }()
	for _, theme := range []string{"light", "dark"} {
		for _, width := range []int64{1200, 390} {
			t.Run(fmt.Sprint(theme, " ", width), func(t *testing.T) {
				s := show(t, server.URL(), theme, width)
				require.Regexp(t, `Informers\s+switches: 0 objects, watching at \d+\s+handler\s+lag\s+policy\s+state\s+switches\s+0\s+merge\s+–\s+Controllers`, s.Text)
				require.Regexp(t, `Controllers\s+controller\s+queued\s+running\s[^§]*\sswitches\s+1\s+1 of 1\s+(\d+\.\d s|\d+ min)\s`, s.Text)
				require.Empty(t, s.Faint)
				require.False(t, s.Overflow)
			})
		}
	}
}

// Another engine begins, which is listed before the others: their charts go on.
func TestPage_ChartsGoOnWhenAnotherEngineBegins(t *testing.T) {
	host := load(t)
	server, err := inspect.Listen("127.0.0.1:0", host)
	require.NoError(t, err)
	defer func() { require.NoError(t, server.Close()) }()
	ctx, closeTab := chromedp.NewContext(browser)
	defer closeTab()
	ctx, expire := context.WithTimeout(ctx, patience)
	defer expire()
	const points = `[...document.querySelectorAll('[data-engine="pods"] polyline')].map(l => l.getAttribute("points").split(" ").length)`
	require.NoError(t, chromedp.Run(ctx,
		chromedp.Navigate(server.URL()),
		until(points+`.filter(n => n >= 4).length === 3`),
	))
	another := engine.NewTopicWith[int](engine.TopicOptions{Host: host, Name: "another"})
	defer func() { require.NoError(t, another.Close()) }()
	_, err = another.Publish(ctx, 1)
	require.NoError(t, err)
	var charted []int
	require.NoError(t, chromedp.Run(ctx,
		until(`document.querySelector('[data-engine="another"]') !== null`),
		chromedp.Evaluate(points, &charted),
	))
	require.Len(t, charted, 3)
	for _, n := range charted {
		require.GreaterOrEqual(t, n, 4)
	}
}

// An engine ends, and one of its name, which began later, runs on. What the page keeps of the first, such
// as its charts and which of its lists are open, is not of the second.
func TestPage_TakesNoEngineForAnEarlierOneOfItsName(t *testing.T) {
	host, err := engine.NewHost(engine.HostConfig{})
	require.NoError(t, err)
	defer func() { require.NoError(t, host.Close()) }()
	begin := func(ended string) *engine.Engine[pod] {
		pods, err := engine.New(engine.Config[pod]{Key: func(p pod) string { return p.Name }, Name: "pods", Host: host})
		require.NoError(t, err)
		w, err := pods.Watch(t.Context(), engine.WatchOptions{Name: ended})
		require.NoError(t, err)
		w.Stop()
		return pods
	}
	server, err := inspect.Listen("127.0.0.1:0", host)
	require.NoError(t, err)
	defer func() { require.NoError(t, server.Close()) }()
	ctx, closeTab := chromedp.NewContext(browser)
	defer closeTab()
	ctx, expire := context.WithTimeout(ctx, patience)
	defer expire()
	const lists = `[...document.querySelectorAll('[data-engine="pods"] details')]`
	first := begin("early")
	require.NoError(t, chromedp.Run(ctx,
		chromedp.Navigate(server.URL()),
		until(lists+`.length === 1`),
		chromedp.Evaluate(lists+`.forEach(d => { d.clicked = true; d.querySelector("summary").click(); })`, nil),
		until(lists+`.some(d => d.open && !d.clicked)`), // as the next state shows it
	))
	second := begin("late")
	defer func() { require.NoError(t, second.Close()) }()
	require.NoError(t, first.Close())
	var open []bool
	require.NoError(t, chromedp.Run(ctx,
		until(lists+`.length === 1 && `+lists+`[0].textContent.includes("late")`),
		chromedp.Evaluate(lists+`.map(d => d.open)`, &open),
	))
	require.Equal(t, []bool{false}, open)
}
