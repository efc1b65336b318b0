// Package inflight limits the requests in flight: in number, and for each user, so that no user and no client
// that is slow keeps the others out.
//
//	read  ──▶ Enter ──▶ reads ─────────────────────────────────▶ Leave
//	                      └── full ──▶ departures ─────────────▶ Leave
//	                                       └── full: one is cut off
//
//	write ──▶ Enter ──▶ writes ──▶ Arrive ──▶ arrivals ──▶ Arrived ──▶ writes ──▶ Depart ──▶ departures
//	                                             └── full: one is given up
//
//	watch ──▶ Enter ──▶ watches ───────────────────────────────▶ Leave
//
//	refused, or not counted ──▶ DepartUnadmitted ──▶ unadmitted ─▶ Leave
//	                                                    └── full: one is cut off
//
// A write has no place among the writes while its body arrives, so that clients which send slowly keep no
// other from writing, and none while its answer is sent, unless that finds none among the departures: then it keeps its
// own until another write wants it. A read whose client is slow to read the answer makes room for others among the reads.
// Such an answer costs the server little more than a buffer and, if it is a list, the objects of its state that were
// replaced since.
//
// Of the slow requests, the one that has been slow longest of the user that has most of them gives way to
// another. The implementation of [Request] says how that is done. Refusals, of which there are many in an overload, give
// way to each other alone: without its answer the client of a write would not know whether that was done.
package inflight
