//go:build browser

package browsertest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/sim"
	"github.com/watchmill/watchmill/sim/scenario"
)

// page runs a shipped scenario for a moment and returns the file of its report.
func page(t *testing.T, name string) string {
	t.Helper()
	s, err := scenario.Shipped(name)
	require.NoError(t, err)
	report, err := sim.Run(t.Context(), s, sim.RunOptions{Resolve: scenario.Options{Small: true, Duration: time.Second}})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), name+".html")
	f, err := os.Create(file)
	require.NoError(t, err)
	require.NoError(t, report.WriteHTML(f))
	require.NoError(t, f.Close())
	return file
}

// browser starts a headless browser that ends with the test.
func browser(t *testing.T) context.Context {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.WindowSize(1300, 2000))
	if path := os.Getenv("CHROME_PATH"); path != "" {
		options = append(options, chromedp.ExecPath(path))
	}
	allocated, free := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(free)
	ctx, cancel := chromedp.NewContext(allocated)
	t.Cleanup(cancel)
	ctx, expire := context.WithTimeout(ctx, time.Minute)
	t.Cleanup(expire)
	return ctx
}

// complaints are what the console said, and what was asked of the network.
type complaints struct {
	mu   sync.Mutex
	said []string
}

func (c *complaints) listen(ctx context.Context) {
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
			if e.Type != network.ResourceTypeDocument && e.Request.URL != "data:," {
				c.said = append(c.said, "request: "+e.Request.URL)
			}
		}
	})
}

// drawn asks the page how many charts there are, and how many of them have a line
// that is long enough to be seen, in a colour that differs from what is behind.
const drawn = `(() => {
	const figures = [...document.querySelectorAll("figure")];
	const background = f => getComputedStyle(f).backgroundColor;
	const visible = f => [...f.querySelectorAll("path.line")].some(p =>
		p.getTotalLength() > 50 && p.getBoundingClientRect().width > 50 && getComputedStyle(p).stroke !== background(f));
	return {
		charts: figures.length, visible: figures.filter(visible).map(f => f.id), faults: document.querySelectorAll(".mark, .band").length,
		overflow: document.documentElement.scrollWidth > document.documentElement.clientWidth,
		page: getComputedStyle(document.body).backgroundColor, text: getComputedStyle(document.body).color,
	};
})()`

type seen struct {
	Charts     int      `json:"charts"`
	Visible    []string `json:"visible"`
	Faults     int      `json:"faults"`
	Overflow   bool     `json:"overflow"`
	Page, Text string
}

func TestPageRendersInBothThemes(t *testing.T) {
	file := page(t, "reconnect-storm")
	themes := map[string]seen{}
	for _, theme := range []string{"light", "dark"} {
		ctx := browser(t)
		var c complaints
		c.listen(ctx)
		var s seen
		var shot []byte
		require.NoError(t, chromedp.Run(ctx,
			log.Enable(), network.Enable(),
			emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}),
			chromedp.Navigate("file://"+file),
			chromedp.Evaluate(drawn, &s),
			chromedp.FullScreenshot(&shot, 90),
		))
		require.Empty(t, c.said, theme)
		require.Equal(t, 8, s.Charts)
		require.ElementsMatch(t, []string{"latency", "percentiles", "writes", "deliveries", "lag", "stalled", "heap", "goroutines"}, s.Visible, theme)
		require.Positive(t, s.Faults)
		require.False(t, s.Overflow, "nothing to scroll sideways")
		require.NotEqual(t, s.Page, s.Text)
		require.Greater(t, len(shot), 10_000)
		themes[theme] = s
	}
	require.NotEqual(t, themes["light"].Page, themes["dark"].Page)
	require.NotEqual(t, themes["light"].Text, themes["dark"].Text)
}

func TestPageFitsAPhone(t *testing.T) {
	file := page(t, "event-bus")
	ctx := browser(t)
	var s seen
	require.NoError(t, chromedp.Run(ctx,
		chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile),
		chromedp.Navigate("file://"+file), chromedp.Evaluate(drawn, &s),
	))
	require.False(t, s.Overflow, "nothing to scroll sideways")
	require.Len(t, s.Visible, 8)
}
