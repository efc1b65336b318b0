package engine_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"

	"github.com/watchmill/watchmill/engine"
)

// streamOrders sends orders to a browser by Server-Sent Events. The id of each is its revision, which the
// browser sends back when it connects again, so that it misses none.
func streamOrders(orders *engine.Topic[Order]) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		last, _ := strconv.ParseUint(r.Header.Get("Last-Event-ID"), 10, 64) // 0 the first time: from now on
		watch, err := orders.Watch(r.Context(), engine.SubscribeOptions{Name: r.RemoteAddr, From: engine.Revision(last)})
		switch {
		case errors.Is(err, engine.ErrExpired): // away for too long, or the process has restarted
			http.Error(w, err.Error(), http.StatusGone)
			return
		case err != nil:
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		defer watch.Stop()
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "id: %d\n\n", watch.Revision()) // where to resume before the first order
		browser := http.NewResponseController(w)
		for err := browser.Flush(); err == nil; err = browser.Flush() {
			events, end := watch.Next(r.Context())
			if end != nil {
				return // the browser has gone, or everything was sent and the topic is drained
			}
			_ = browser.SetWriteDeadline(time.Now().Add(10 * time.Second)) // one that hangs holds up a Drain
			for _, ev := range events {
				data, _ := json.Marshal(ev.Object.Value)
				fmt.Fprintf(w, "id: %d\ndata: %s\n\n", ev.Revision, data)
			}
		}
	}
}

// browse connects as a browser does that has the event of this id, and prints the data of n events.
func browse(url, id string, n int) {
	request, err := http.NewRequest(http.MethodGet, url, nil)
	must(err)
	request.Header.Set("Last-Event-ID", id)
	response, err := http.DefaultClient.Do(request)
	must(err)
	defer response.Body.Close()
	fmt.Println(response.Status)
	for lines := bufio.NewScanner(response.Body); n > 0 && lines.Scan(); {
		if data, found := strings.CutPrefix(lines.Text(), "data: "); found {
			fmt.Println(data)
			n--
		}
	}
}

// A browser that comes back gets what it has missed. Before the server shuts down, Drain sends to each
// what was published and ends the streams, for which http.Server.Shutdown would wait.
func Example_serverSentEvents() {
	ctx := context.Background()
	orders := engine.NewTopicWith[Order](engine.TopicOptions{FirstRevision: 100})
	server := httptest.NewServer(streamOrders(orders))
	defer server.Close()
	for id := range 3 {
		_, err := orders.Publish(ctx, Order{ID: id + 1})
		must(err)
	}
	browse(server.URL, "101", 2) // it had the first order
	browse(server.URL, "7", 0)   // of the process before
	must(orders.Drain(ctx))
	browse(server.URL, "103", 0)
	// Output:
	// 200 OK
	// {"ID":2,"Total":""}
	// {"ID":3,"Total":""}
	// 410 Gone
	// 503 Service Unavailable
}
