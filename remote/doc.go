// Package remote implements storage over another server: one of this module, or any
// that speaks the Kubernetes API protocol.
//
//	origin, err := remote.New(format, remote.Config{URL: "http://10.0.0.1:8080"})
//
//	engine over it                a replica: its cache serves reads and watches
//	registry.Store over that      a replica that takes writes, and passes them on
//	serve.Server over that        a tree: clients may move between its servers
//
// Revisions are the origin's, so that a watch that breaks at one replica is resumed at
// another, or at the origin.
//
// # How data goes through it
//
//	List, Get, Revision ──▶ GET ──────────────────────────▶ origin
//	Put, Remove, Forward… ─▶ POST, PUT, PATCH, DELETE ────▶ origin
//	Watch ─▶ stream: GET watch=true ──frames──▶ Watcher ──Next──▶ Reflector
//	           ▲    │ the connection ends, 429 or 5xx          │
//	           └────┴── pause, and on from the last revision   └─ 410: ErrExpired
//
// A replica lists and then watches from the list's revision. Its watch is begun as soon as the list has told
// the revision, so that the origin may give up the history in between, however long the list takes. Objects of a
// list are decoded as they arrive, so that its text, which may be larger than they are, is never in memory as a whole.
//
// A [Backend] has one goroutine for each watch. What a watch reads ahead is bounded by
// [Config].BufferBytes, or while it waits for its list by [Config].MaxListBytes; then it stops reading, and
// the origin sees a slow client.
//
// # A slow link
//
// A replica starts over any link that carries 64 KiB in [Config].RequestTimeout and 96 KiB in the WriteStall of an
// origin of this module, by default 26 kbit/s, and on which its list arrives faster than the objects change.
// 100,000 objects of 1 kB take a quarter of an hour over 1 Mbit/s:
//
//   - It asks for pages of 10,000 objects. If the origin has given up their revision by the next page, it asks
//     for all objects at once: servers of this module send those of one revision, however long they take. They must
//     fit MaxListBytes, or the list fails by a [*SizeError] each time. If the connection breaks meanwhile, the list
//     begins again.
//   - Meanwhile the watch keeps the changes in memory, and shares the link.
//   - An origin that compresses its answers helps most: by CompressAbove of package serve, or watchmill serve
//     --compress. A [Backend] accepts gzip, unless a Client of the user's does not.
//   - The Kubernetes API server breaks off an answer that takes longer than its --request-timeout, a minute by
//     default. It compresses answers of more than 128 KiB.
//
// # Types
//
// A replica decodes objects into its own type, and sends whole objects for updates and for patches
// other than applies. So that type must have all fields that the origin's has, or a write at the
// replica removes the others: where an origin may be newer, let it be unstructured.Unstructured.
//
// # An origin that was restored
//
// A server of this module identifies its storage in a header of each list and each watch
// ([registry.StorageHeader]), which [Backend.StoreID] returns. When the origin's storage
// is restored from a copy or replaced, the identity changes. A replica then lists again,
// and refuses checkpoints of the old storage, whatever the new revision is.
//
// Other servers, such as the Kubernetes API server, have no such header. A replica of one
// notices that storage was restored only if the revision is lower than before.
//
// # A server that is gone
//
// If the server or the network goes without a word, so that no connection is closed, a [Backend] notices
//
//   - for a request, after [Config].RequestTimeout. A write that may have been sent is then a
//     [backend.UncertainError]; one that had no connection is not.
//   - for a watch, when its connection has been quiet for 30 s, and has answered neither pings of HTTP/2 nor probes of
//     TCP for 15 s. It then connects anew, after a pause of at most [Config].MaxPause, and resumes where it was: it
//     misses and repeats nothing. With a Client of the user's that does neither, and if the server's host answers
//     and the server does not, over HTTP/1.1, it notices 30 s after the end of [Config].WatchTimeout.
//
// A name is looked up for each connection, so that a [Backend] follows a server that moves. Addresses are tried one
// after the other: of two, one that does not answer takes 15 s each time that a connection is opened.
//
// Meanwhile a replica serves what it has, to reads with resourceVersion=0 and to watches, and stays ready. Lists of
// the newest state, and writes, fail when RequestTimeout has passed. [Config].OnError is told why a watch reconnects.
//
// # What a replica is not told
//
// The protocol says less than storage in the process does:
//
//   - Created of an object is a number made of its uid. It differs between objects of one
//     key, and is not a revision. Written is when the event arrived, or, for an object
//     that was listed, when it was created.
//   - Events of one revision may come in several batches, since none says that it is the last. In
//     between a replica serves a state that the origin never had, under that revision: a client that
//     lists then, and watches from there at another server, misses the rest. After the second batch the
//     replica lists again, and ends its clients' watches as expired unless the list has a later revision.
//     Servers of this module give each event a revision of its own, unless their storage is shared.
//     Kubernetes deletes objects that expire, such as those of kind Event, up to a thousand at a
//     revision.
//   - A watch cannot be asked for progress. Servers of this module tell a replica of it, by a
//     bookmark about 100 ms after a change that is not an event of its watch, such as one outside of
//     [Config].Namespace. A list of the newest state waits for that.
//   - Other servers send only about one bookmark a minute, and the Kubernetes API server numbers the
//     changes of all kinds together. So while objects change that are not the replica's, the replica
//     does not know that it has the newest state of its own objects. A list of that waits for
//     engine.Config.FreshnessTimeout, and is then passed on to the server; a watch that begins with
//     it is refused with [store.ErrFuture]; and engine.Drain and an informer's WaitForRevision may
//     wait for the bookmark. A watch that begins with what the replica has, as requested by
//     resourceVersion=0, is served.
//   - A connection that ends may have left out events of the last revision. The next one
//     begins before that revision, unless a bookmark has said that it is complete. If the
//     server no longer has what came before, the watch ends with [store.ErrExpired].
//   - Compaction is up to the origin: Compact fails with [store.ErrUnsupported]. So do
//     TTLs, and the removal of an object that finalizers keep.
//   - A replica starts with the history that its origin's window has. It starts with none if
//     [Config].NoHistory says so, or if the origin does not report its oldest revision. A watch
//     from before that is refused with [store.ErrExpired].
//
// # Security
//
// To the origin a replica is one user, that of [Config].Token, TokenSource, TLS or Client, whichever
// user sends a request to the replica. So a replica must authorize its users itself, by
// Authorize of package serve.
//
// A redirect to another host or port, or away from TLS, does not get the token. A redirect after
// which HTTP would read in place of writing is a failure.
//
// If the origin refuses the credentials, the replica's clients get 503 and what the origin said.
// They do not get its 401, since they would then log in again.
package remote
