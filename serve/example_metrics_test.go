package serve_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
)

// totals counts requests, watches and what these send.
type totals struct {
	serve.NoMetrics
	requests, watches, events, bytes atomic.Int64
	sent                             func() // is called with each event
}

// Served is called once a request is over.
func (t *totals) Served(serve.Measured) { t.requests.Add(1) }

// Watching is called when a watch begins.
func (t *totals) Watching(serve.Endpoint) serve.WatchMetrics {
	t.watches.Add(1)
	return watchTotals{totals: t}
}

// watchTotals are the metrics of one watch.
type watchTotals struct {
	serve.NoWatchMetrics
	*totals
}

func (t watchTotals) Sent(bytes int) {
	t.events.Add(1)
	t.bytes.Add(int64(bytes))
	t.sent()
}

func (t watchTotals) Ended() { t.watches.Add(-1) }

// Metrics of one's own have methods for what they measure of requests and of watches.
func ExampleWatchMetrics() {
	gadgets, err := registry.New(registry.Config[Gadget]{Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Gadget"}})
	if err != nil {
		log.Fatal(err)
	}
	defer gadgets.Close()
	ctx, leave := context.WithCancel(context.Background())
	t := totals{sent: leave} // the client leaves after the first event
	server, err := serve.New(serve.Config{Resources: []serve.Provider{gadgets}, Metrics: &t})
	if err != nil {
		log.Fatal(err)
	}
	do := func(method, path, body string) {
		request := httptest.NewRequestWithContext(ctx, method, "http://127.0.0.1/apis/example.com/v1/namespaces/default/gadgets"+path, strings.NewReader(body))
		request.Header.Set("Content-Type", "application/json")
		server.ServeHTTP(httptest.NewRecorder(), request)
	}
	do(http.MethodPost, "", `{"metadata":{"name":"gear"}}`)
	do(http.MethodGet, "?watch=true", "")
	fmt.Println("requests:", t.requests.Load(), "open watches:", t.watches.Load(), "events:", t.events.Load(), "sizes:", t.bytes.Load() > 0)
	// Output: requests: 2 open watches: 0 events: 1 sizes: true
}
