// Package kube sets the Kubernetes watch cache up as a contender.
//
//	Write ──▶ storage (in memory, in etcd's place) ──one watch──▶ Cacher ──▶ Watch, GetList, Get
//
// The Cacher is made as the API server makes the one for pods: by
// NewCacherFromConfig with the trigger function and the index on spec.nodeName,
// the event history window of 75 s, the real clock, and default feature gates,
// behind a CacheDelegator. Objects are the apiserver's own example pods, typed,
// as its tests and benchmarks use them. A consumer is a goroutine that ranges
// over ResultChan, which is what serves an HTTP watch.
//
// Reads ask for resource version "0": what the cache has, as ours do.
//
// The storage is in the rival's favour. It hands out its objects without
// decoding any, it never fails and never waits, and writes go to it directly.
package kube
