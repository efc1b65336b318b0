// Package clock is the source of time for all of watchmill: the real time of
// package time, or a [Virtual] clock that a test or a simulation advances.
//
//	AfterFunc(d, f) ──▶ armed ──d has passed──▶ f
//	                      └──Stop──▶ cancelled
//
// The engine with its actors, caches and informers, the queues, controllers and storage in memory
// read the time and arm timers by a Clock alone, so that a run of them on a virtual clock is
// deterministic. Only the time that closing may take, such as engine.HostConfig.CloseTimeout, is
// that of package time. Waits for a file, a network or a process use package time, too: in etcd,
// remote, serve, inspect and sim, and in bolt for the lock and the transactions of its file, but
// not for the times of its writes and expiries.
package clock
