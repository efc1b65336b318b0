// Package expiry has the timers of backends with their state in memory: an alarm with one
// timer, and a queue of the objects with a TTL in the order of their expiry.
//
//	writes ──Add, Remove──▶ Queue ──Earliest──▶ Alarm ──ring──▶ backend: deletes what is Expired
//	                          ▲                                    │
//	                          └───────── Expired, Remove ──────────┘
package expiry
