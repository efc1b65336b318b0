// Package serve puts kinds on the network in the Kubernetes API protocol, so that
// kubectl, client-go and whatever else speaks it work on an engine.
//
//	widgets, err := registry.New(registry.Config[Widget]{Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Widget"}})
//	err = serve.ListenAndServe(ctx, "127.0.0.1:8080", widgets)
//
//	kubectl -s http://127.0.0.1:8080 get widgets -w
//
// # The way of one request
//
//	http.Server
//	   │ ServeHTTP: host, cross origin, draining
//	   ▼
//	parse ──▶ Request: verb, group, version, resource, namespace, name, selectors
//	   │ Authenticate ─▶ Limits ─▶ Authorize
//	   ├─▶ documents: discovery, OpenAPI, version, health
//	   └─▶ a registry.Resource
//	          get, list   Item ──▶ encodings ──▶ one document, streamed
//	          watch       Stream ─▶ encodings ──▶ frames, flushed when there is no more
//	          writes      body ──▶ Create, Update, Delete ──▶ Item
//	   │ an error anywhere: a metav1.Status
//	   ▼
//	Metrics, Audit
//
// # Usage
//
// A [Server] is an http.Handler; mount it where you like, or let
// [Server.ListenAndServe] listen with safe settings. It owns no kinds: close them
// after it has shut down.
//
// # Encoding
//
// An object is encoded once for all that read the same state of it: watches, gets
// and lists share its bytes, see [Limits].EncodingBytes.
//
// # Concurrency
//
// A watch runs on its request's goroutine and has no other. A client that does not
// read holds up itself alone, until a write makes no progress for
// [Limits].WriteStall.
//
// # Forms of a watch
//
// A watch is a stream of JSON, a frame a line; Server-Sent Events if the client
// accepts them; and with package serve/websocket a WebSocket, a message a frame.
//
// # Errors of a watch
//
// A watch ends cleanly at its deadline. It ends with an ERROR event when it cannot
// go on: 410 if its position has left the window; 429 if it may try again from
// where it is, and for whatever ends it before its initial state is complete: the
// informers of client-go answer anything else there with a storm of requests.
//
// # Monitoring
//
// [Config].Metrics is told of each request and of each event that a watch is sent;
// package serve/prommetrics shows that to Prometheus, with the names of the API
// server. [Config].MetricsHandler answers /metrics.
//
// # Security
//
// Without [Config].Authenticate every user is anonymous, without Authorize all is
// allowed; then [Server.ListenAndServe] listens on loopback alone. Names in the Host
// header are refused unless [Config].Hosts lists them, so that no web page reaches
// the server by a name of its own, and so are writes from other origins.
package serve
