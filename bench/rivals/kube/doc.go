// Package kube adapts the Kubernetes watch cache as a contender.
//
//	Write ──▶ storage (in memory, instead of etcd) ──one watch──▶ Cacher ──▶ Watch, GetList, Get
//
// The Cacher is made as the API server makes the one for pods: by
// NewCacherFromConfig with the trigger function and the index on spec.nodeName,
// the event history window of 75 s, the real clock, and default feature gates,
// behind a CacheDelegator. Objects are the apiserver's own example pods, typed,
// as its tests and benchmarks use them. A consumer is a goroutine that ranges
// over ResultChan, which is what serves an HTTP watch.
//
// Reads ask for resource version "0", that is, from the cache, like watchmill's.
//
// The storage favours the rival: it returns objects without decoding, never fails
// or blocks, and is written to directly.
//
// As a server, it is behind the handlers that the API server installs for a kind,
// which negotiate, encode and stream, and the chain of filters that a generic API
// server has by default. Requests are not authenticated, and an authorizer allows
// everything; there is no audit, and a limit of requests in flight in place of
// priority and fairness.
package kube
