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
//	   │ ServeHTTP: host, cross origin
//	   ▼
//	parse ──▶ Request: verb, group, version, resource, namespace, name, selectors
//	   │ health ─▶ draining ─▶ Authenticate ─▶ Impersonation ─▶ Limits ─▶ Authorize
//	   ├─▶ documents: discovery, OpenAPI, version
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
// A [Server] is an http.Handler. Let [Server.ListenAndServe] listen with safe settings, or
// mount it beside handlers of your own in an http.Server that [Server.Harden] has set up. It has
// /, which lists the others, /api, /apis, /openapi, /version, /healthz, /livez, /readyz and
// /metrics, so mount it at /, or below a prefix that [http.StripPrefix] takes off. It owns no
// kinds: close them after it has shut down. Kinds can come and go while it serves: [Server.Add],
// [Server.Replace], [Server.Remove] and [Server.WaitUnused].
//
// # Forms of a watch
//
// A watch is a list with the parameter watch, or, as old clients write it, a path with watch/
// behind the version. The answer is a stream of JSON, one frame a line: {"type":…,"object":…}, or
// an empty line, which says that the watch goes on. It is Server-Sent Events if the client accepts
// them: then the type is the name of the event, and its data is the object alone. With package
// serve/websocket it can be a WebSocket, one message a frame.
//
// The protocol has only objects that are stored: watches leave out what [engine.Engine.Emit]
// sends. Clients that want bookmarks get one for it.
//
// A watch with allowWatchBookmarks gets one bookmark each 25 s or so. With progressNotify, too, a
// parameter of this server alone that others ignore, it gets one about 100 ms after a change that is
// not for it, at most ten a second ([engine.WatchOptions].Progress). It is for replicas, by package
// remote, which could not know otherwise that they have everything.
//
// # Clients without a library
//
// A client that keeps a copy of the objects begins without a resourceVersion, and asks for bookmarks:
//
//	curl -N 'http://127.0.0.1:8080/apis/example.com/v1/widgets?watch=true&allowWatchBookmarks=true'
//
// First come the objects that there are, as ADDED, in the order of their keys. The first BOOKMARK says that these
// are all. From then on the metadata.resourceVersion of the last event is the position to resume from, by the parameter
// resourceVersion. A watch ends after 30 to 60 minutes, or after timeoutSeconds: then resume. If it ends before that
// bookmark, by an ERROR whose object has the code 410, or is refused with 410 or 504, drop the copy and begin anew.
//
// An EventSource of a browser resumes by itself: from the last position or, before the first BOOKMARK, from the
// beginning. It closes for good when it is refused. Listen to the types, since onmessage is not called:
//
//	const all = new Map()
//	function follow(url) { // …/widgets?watch=true&allowWatchBookmarks=true
//		let complete = false
//		const watch = new EventSource(url)
//		const on = (type, f) => watch.addEventListener(type, (e) => f(JSON.parse(e.data)))
//		watch.onopen = () => complete || all.clear()
//		on("BOOKMARK", () => (complete = true))
//		on("ADDED", (o) => all.set(o.metadata.uid, o))
//		on("MODIFIED", (o) => all.set(o.metadata.uid, o))
//		on("DELETED", (o) => all.delete(o.metadata.uid))
//		watch.onerror = () => watch.readyState === EventSource.CLOSED && setTimeout(follow, 1000, url) // 410: begin anew
//	}
//
// # Behind a proxy
//
// A watch passes nginx, HAProxy and others as they are: its header asks them neither to collect events nor to
// compress them, and it is never quiet for 30 s if its kind is of package registry. What they have to be told:
//
//   - The name that clients call the proxy by, if the proxy passes the Host header on: see Security. nginx sends the
//     address or the name in its proxy_pass instead. A watch over WebSocket with an Origin, as browsers and
//     Java's clients send it, needs the Host of the client with its port, nginx's $http_host, or the Origin among those
//     of package serve/websocket.
//   - HAProxy delays each event by 200 ms without "option http-no-delay" in the frontend.
//   - nginx refuses bodies above 1 MB without "client_max_body_size 3m", and answers a WebSocket as any watch
//     without "proxy_http_version 1.1" and the headers Upgrade and Connection.
//   - Requests are HTTP/1.0, HTTP/1.1 or, over TLS alone, HTTP/2. A path prefix has to be taken off.
//
// Users of tokens are known behind a proxy. Those of client certificates are known only if it passes TLS on. Headers in
// which a proxy tells of a client, such as X-Forwarded-For, have no meaning: [Limits].ConnectionsPerAddress and
// [Config].Audit see the address of the proxy.
//
// # Clients that are gone
//
// A client that ends its connection ends its watches and requests at once. One whose host or network has gone
// without a word holds its place, its memory and its connection until that is noticed:
//
//   - An answer that does not fit the buffers of the connection: after [Limits].WriteStall.
//   - HTTP/2: after 45 s at most, for all requests of the connection. It is pinged when it was quiet for 30 s, and
//     has 15 s to answer.
//   - A watch over HTTP/1.1: on Linux when its host has acknowledged nothing for 45 s, or for WriteStall if that is
//     more, of what a quiet watch is sent each 25 s: after 70 s or so at most. That also holds for a client that is
//     there and reads nothing, once its buffers are full. On other systems, and if a middleware keeps the connection
//     with net/http, it is up to the system, which may take a quarter of an hour.
//   - A watch over WebSocket: after 40 s, by pings of package serve/websocket.
//   - A connection without a request: after two minutes; a request whose header or body does not arrive: after 10 s, or
//     [Limits].WriteTimeout.
//
// Clients notice a server that is gone by the same means: package remote says how long it takes. client-go pings
// over HTTP/2 as the server does. Over HTTP/1.1, and so without TLS, its watches notice after 165 s.
//
// # Errors of a watch
//
// A watch ends cleanly at its deadline. If it cannot go on before that, it ends with an ERROR
// event:
//
//	410  its position has left the window, or had left it before the watch began: the client
//	     lists. An EventSource that begins there is refused with 410 instead, since it would
//	     repeat what is answered.
//	429  the client may resume from where it is; also for any cause before the initial state
//	     is complete, since client-go's informers answer other statuses there with a storm of
//	     requests
//
// A watch from a revision that the cache does not reach within a few seconds is refused:
//
//	429  storage has the revision, or does not answer: the client comes back after
//	     Retry-After, and resumes
//	504  storage does not have the revision either: the client lists
//
// One that begins with the state is refused with 504 in both cases if the cache does not become as new as
// the request demands: as the resourceVersion or, without one, as storage. Code, cause and Retry-After are
// those of Kubernetes, which sends them in an ERROR event, though. After that client-go's informers try
// again without a pause; a refusal makes them wait for Retry-After.
//
// # Writes that may have been done
//
// If it is unknown whether a write was done ([backend.ErrUncertain]), as after a failure of the network
// before storage has answered, the answer is 500 without Retry-After. With one, clients such as client-go
// would send the write again, and a POST with generateName would create a second object. The same holds for
// an action of [registry.NewAction] that fails by an error of its own. If another server has answered, such
// as the origin of a replica or a gateway before it, a Retry-After of its own is passed on, as its own
// clients get it: a gateway that gives up on a write sends one all the same.
//
// # Storage that ends for good
//
// If storage has ended for good, for example because a backend was closed while the server serves,
// requests and watches that need it get 503, and /readyz fails. The answer has no Retry-After, which
// would make clients try again in vain. Reads with resourceVersion=0 are answered from the cache all
// the same. If a restart helps, have a supervisor do it, by a [Check] that is Live and looks at
// [engine.Readiness].Ended.
//
// A kind whose own store was closed is another matter: another store ([Server.Replace]), or another server,
// may answer next, so requests get 429 with a Retry-After of a second, and watches end. /readyz fails until
// the kind is replaced or removed. [Server.Remove] a kind, and [Server.WaitUnused], before you close or drain
// its store, or shut the server down first.
//
// Failures that last while storage goes on, such as [backend.ErrFailed] and [backend.ErrReadOnly], are
// answered with 500 without Retry-After.
//
// # Concurrency
//
// A client that does not read delays no other client, and is cut off when a write to it makes
// no progress for [Limits].WriteStall.
//
// A watch runs on its request's goroutine. Over HTTP/2 a second goroutine does what comes
// before the answer, hooks included, and ends when the answer begins. Over HTTP/1.1 a watch
// takes its connection over from net/http and has two small goroutines, one that sends and one
// that notices when the client is gone. That needs an http.Server that [Server.Harden] has set
// up, and no middleware in between.
//
// [Limits] bound the requests in flight. With Authenticate one user has at most half of the
// places. Slow clients do not keep others out:
//
//   - A write has no place while its body arrives, nor while its answer is read.
//   - A read whose answer has been sent for a second gives its place to others, and goes on.
//   - If there are many bodies that arrive, or many such answers, one of the user with the most is
//     cut off for another, bodies with 429.
//
// # Encoding
//
// An object is encoded once for all that read the same state of it: watches, gets and lists
// share its bytes. See [Limits].EncodingBytes.
//
// # Differences from a cluster
//
// The server is an API server alone. Clients that expect the rest of a cluster, or the rules of
// Kubernetes' own kinds, meet these differences:
//
//   - Owners: objects whose owners are gone stay, since nothing collects them, and the
//     propagationPolicy of a deletion is only checked. If a garbage collector runs against the
//     server, such as that of a kube-controller-manager, set [registry.Config].GarbageCollection
//     for each kind. Without it the collector deletes such objects in the background, even those
//     that the client wanted to orphan.
//   - Namespaces: a namespace is a name, and need not exist. If there is a kind Namespace,
//     deleting one of its objects deletes nothing in that namespace.
//   - Admission: there are no webhooks and policies. A [registry.Admitter] decides in the
//     process.
//   - Rules: the defaults and rules of a kind are those of its [registry.Strategy]. The Go
//     types of Kubernetes do not bring theirs, nor the fields that selectors may name.
//   - Subresources are status, scale, those of [registry.Kind].Parts and the actions of
//     [registry.NewAction]. There are no streams, such as logs and exec.
//   - Encodings: bodies are JSON, or what [registry.Config].Decoders take besides. Answers are
//     JSON. Clients may prefer protobuf or CBOR if they also accept JSON, as all of client-go
//     do. A kind without a decoder for protobuf takes no Scale in protobuf either.
//   - Sizes: the header of a request has at most 64 KiB ([Server.Harden]), a selector 16 KiB, and
//     the selectors of a request have 100 requirements. A patch or an apply makes no object larger than
//     [Limits].BodyBytes says.
//   - Impersonation needs the verb impersonate. There are no constrained forms of it.
//   - OpenAPI describes a Go type by its tags, or as [registry.Config].Schema does. It does not
//     know how the types of apply.WithTypes merge lists and maps: give a Schema to clients that
//     merge by the document.
//   - All objects have a generation. A dry run refuses what its write would refuse, such as a
//     resourceVersion in a creation. Revisions of two kinds need not be comparable.
//
// # Monitoring
//
// /livez and /readyz answer without credentials. /readyz fails until each kind was read, once the
// storage of one has ended for good, or the store of one is closed, and while the server shuts down.
// [Config].Checks adds conditions, to /livez, too. As in Kubernetes ?verbose lists them, and
// ?exclude=NAME leaves one out. [Config].Logger gets the failures of storage, one in ten seconds, and the
// names of the kinds for which /readyz fails.
//
// [Config].Metrics receives each request and each event of a watch. Package serve/prommetrics
// exports them to Prometheus, under the names of the API server. [Config].MetricsHandler
// answers /metrics.
//
// # Security
//
// Without [Config].Authenticate every user is anonymous, and without Authorize all is allowed.
// [Server.ListenAndServe] listens beyond loopback only with TLS and Authenticate, or if
// [ListenOptions].Insecure allows it.
//
// Names in the Host header are refused unless [Config].Hosts lists them, so that no web page
// reaches the server under the page's own name (DNS rebinding). Writes from other origins are
// refused, too.
//
// Clients ask which user they are and what they may do, as kubectl auth can-i does, and consoles such as k9s before they
// show a kind, if the server has the kinds of package serve/access. Without them such consoles show nothing.
//
// With [Config].Impersonation a user may act as another, by the headers of kubectl --as, if
// Authorize allows it. The request then has the rights of the other user alone, and counts for
// its limits. [Config].Audit gets both users. Without that setting, or with a header that is
// not understood, such a request is refused: it is never served with the rights of its sender.
//
// The types of a kind decode what clients send. The Quantity of Kubernetes takes a minute to decode 1e-100000000,
// and nothing stops it: serve kinds that have one, such as Pod, to clients that are trusted with that.
package serve
