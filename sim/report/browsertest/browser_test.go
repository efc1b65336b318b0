//go:build browser

package browsertest

import (
	"context"
	_ "embed" // embeds the script that examines a page
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

//go:embed look.js
var look string

// seen describes a page as look.js sees it.
type seen struct {
	// Charts are all charts, WithData those whose lines are all visible, and Unlabelled
	// those without a description for screen readers.
	Charts, WithData, Unlabelled []string
	// CutOff are texts that extend beyond their charts, Overlapping texts that overlap
	// each other, and Faint texts with a contrast below 4.5.
	CutOff, Overlapping, Faint []string
	// Faults is the number of marks and bands over charts.
	Faults int
	// HighRows are cells far higher than a line, and Clipped are tables that are wider
	// than their room. Overflow says that the page is wider than the window.
	HighRows, Clipped []string
	Overflow          bool
	Badge             string
	// Assertions is how many have a verdict, HiddenVerdicts how many of those are seen only
	// when their table is scrolled.
	Assertions, HiddenVerdicts int
	Page, Text                 string
}

// window is how a page is shown.
type window struct {
	width int64
	theme string // light or dark
	media string // "" for the screen, or print
}

// show opens the page and returns what it shows, with a screenshot. The page must write
// nothing to the console and load nothing but the file.
func show(t *testing.T, file string, w window) (s seen, shot []byte) {
	t.Helper()
	ctx := tab(t)
	var c complaints
	c.listen(ctx)
	require.NoError(t, chromedp.Run(ctx,
		log.Enable(), network.Enable(),
		emulation.SetDeviceMetricsOverride(w.width, 900, 1, w.width < 600),
		emulation.SetEmulatedMedia().WithMedia(w.media).WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: w.theme}}),
		chromedp.Navigate("file://"+file),
		chromedp.Evaluate(look, &s),
		chromedp.FullScreenshot(&shot, 90),
	))
	require.Empty(t, c.all(), "%+v", w)
	return s, shot
}

// browser is the headless browser that all tests share, a tab for each page.
var browser context.Context

// The scenarios run before there is a browser: its goroutines come and go, and a run demands
// that there are as many at its end as at its start.
func TestMain(m *testing.M) {
	runShipped()
	os.Exit(withBrowser(m.Run))
}

// patience is how long anything may take on the slowest machine.
const patience = 5 * time.Minute

// withBrowser starts the browser, calls do, and ends the browser.
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

// tab opens a tab that is closed when the test ends.
func tab(t *testing.T) context.Context {
	t.Helper()
	ctx, closeTab := chromedp.NewContext(browser)
	t.Cleanup(closeTab)
	ctx, expire := context.WithTimeout(ctx, patience)
	t.Cleanup(expire)
	return ctx
}

// complaints are the messages on the console, and the requests to the network.
type complaints struct {
	mu   sync.Mutex
	said []string
}

func (c *complaints) all() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.said
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
