// Package serve puts kinds on the network in the Kubernetes API protocol, so that
// kubectl, client-go and other clients of that protocol work on an engine.
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
//	   │ Authenticate ─▶ Impersonation ─▶ Limits ─▶ Authorize
//	   ├─▶ documents: discovery, OpenAPI, version, health
//	   └─▶ a registry.Resource
//	          get, list   Item ──▶ encodings ──▶ one document, streamed
//	          watch       Stream ─▶ encodings ──▶ frames, flushed when there is no more
//	          writes      body ──▶ Limits ──▶ Create, Update, Delete ──▶ Item
//	   │ an error anywhere: a metav1.Status
//	   ▼
//	Metrics, Audit
//
// # Usage
//
// A [Server] is an http.Handler; mount it where you like, or let
// [Server.ListenAndServe] listen with safe settings. It owns no kinds: close them
// after it has shut down. Kinds can come and go while it serves: [Server.Add],
// [Server.Replace] and [Server.Remove].
//
// # Encoding
//
// An object is encoded once for all that read the same state of it: watches, gets
// and lists share its bytes, see [Limits].EncodingBytes.
//
// # Concurrency
//
// A watch runs on its request's goroutine. Over HTTP/2 another goroutine, which ends when the
// answer begins, does what comes before, hooks included. Over HTTP/1.1 a watch takes its connection over from
// net/http if [Server.Harden] set up the http.Server and no middleware is in between. Then
// it has two small goroutines, one that sends and one that notices when the client is gone.
// A client that does not read delays no other client, and is cut off when a write makes no
// progress for [Limits].WriteStall.
//
// A write has no place among the requests in flight while its body arrives. So clients that
// send slowly keep no other from writing: if many do, those of the user with the most give way,
// with 429. A read whose answer has been sent for a second gives its place to others, and goes on;
// if many do, some are cut off likewise. With Authenticate, one user has at most half of the places;
// see [Limits].
//
// # Forms of a watch
//
// A list with the parameter watch is one, and so is a path with watch/ behind the version, as
// clients wrote before. A watch is a stream of JSON, a frame a line; Server-Sent Events if the client
// accepts them; and with package serve/websocket a WebSocket, a message a frame.
//
// # Errors of a watch
//
// A watch ends cleanly at its deadline. It ends with an ERROR event when it cannot
// go on: 410 if its position has left the window; 429 if the client may resume from
// where it is, and for any cause before the initial state is complete, since the
// informers of client-go answer any other status there with a storm of requests.
//
// A watch from a revision that the cache has not reached is refused after a few seconds:
// with 429 and Retry-After if storage has the revision, or does not answer, so that the
// client comes back and resumes; with 504 if the revision is in the future of storage
// too, so that the client lists.
//
// # What a cluster has besides
//
// The server is an API server alone. Clients that expect the rest of a cluster, or the rules of
// Kubernetes' own kinds, meet these differences:
//
//   - Objects whose owners are gone stay, since nothing collects them. The propagationPolicy of a
//     deletion is checked, and adds no finalizer.
//   - A namespace is a name: it need not exist, and if there is a kind Namespace, what is in one stays
//     when its object is deleted.
//   - There are no admission webhooks and policies; a [registry.Admitter] decides in the process.
//   - The defaults and rules of a kind are those of its [registry.Strategy]. The Go types of Kubernetes
//     do not bring theirs, nor the fields that selectors may name.
//   - Subresources are status, scale and the actions of [registry.NewAction]. Streams, such as logs and
//     exec, are none of them.
//   - Bodies are JSON, or what [registry.Config].Decoders take besides. Answers are JSON; a client that also
//     accepts it, as all of client-go do, may prefer protobuf or CBOR.
//   - OpenAPI describes a Go type by its tags, or as [registry.Config].Schema does. It does not know how the
//     types of apply.WithTypes merge lists and maps: clients that merge by the document have to be given a Schema.
//   - All objects have a generation, and a dry run refuses what its write would refuse, such as a
//     resourceVersion in a creation.
//   - Revisions of two kinds need not be comparable.
//
// # Monitoring
//
// /livez and /readyz answer without credentials. /readyz fails until each kind was read, and while
// the server shuts down; [Config].Checks adds conditions, to /livez, too. [Config].Logger gets
// the failures of storage, one in ten seconds.
//
// [Config].Metrics receives each request and each event of a watch; package
// serve/prommetrics exports them to Prometheus under the names of the API server.
// [Config].MetricsHandler answers /metrics.
//
// # Security
//
// Without [Config].Authenticate every user is anonymous, without Authorize all is
// allowed; then [Server.ListenAndServe] listens on loopback alone. Names in the Host
// header are refused unless [Config].Hosts lists them, so that no web page reaches
// the server under the page's own name (DNS rebinding); so are writes from other origins.
//
// A user that [Config].Authorize allows to may act as another, by the headers of kubectl --as,
// if [Config].Impersonation is set. The request then has the rights of the other user alone,
// and counts for its limits; [Config].Audit gets both users. Without that setting, and when a header is
// not understood, the request is refused, not served with the rights of its sender.
package serve
