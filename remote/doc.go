// Package remote is storage that is another server: one of this module, or any that
// speaks the Kubernetes API protocol.
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
//	Put, Remove, Forward… ─▶ POST, PUT, DELETE ───────────▶ origin
//	Watch ─▶ stream: GET watch=true ──frames──▶ Watcher ──Next──▶ Reflector
//	           ▲    │ the connection ends, or 429              │
//	           └────┴── pause, and on from the last revision   └─ 410: ErrExpired
//
// A [Backend] has one goroutine for each watch. What a watch reads ahead is bounded by
// [Config].Buffer; then it stops reading, and the origin sees a slow client.
//
// # An origin that was restored
//
// A server of this module tells which storage it has, with each list and each watch
// ([registry.StorageHeader]); [Backend.StoreID] returns it. So a replica lists again, and
// refuses checkpoints of before, when the storage of its origin was restored from a
// copy or replaced, also if that has come to the same revision or a greater one. Of a
// server that does not tell, as the Kubernetes API server, it is noticed only if the
// revision is lower than before.
//
// # What a replica is not told
//
// The protocol says less than storage in the process does:
//
//   - An object's Created is a number made of its uid: it tells objects of one key
//     apart, and is no revision. Written is when the event arrived.
//   - Events of one revision may come in several batches. Servers of this module give
//     each event a revision of its own, unless their storage is shared.
//   - Compact is the origin's affair and fails with [store.ErrUnsupported], and so do
//     TTLs, and the removal of an object that finalizers keep.
//   - The history of before the replica started is the origin's: a watch from an older
//     revision is refused with [store.ErrExpired].
//
// # Security
//
// Every request carries the credentials of [Config].Token or of Client: to the origin a
// replica is one user, whatever user asks the replica. Let the replica authorize its
// own. Redirects to other hosts do not get the token.
package remote
