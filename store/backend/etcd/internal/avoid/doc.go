// Package avoid keeps the requests of an etcd client away from members that are connected and do not answer, such as
// one that is cut off from the others, or whose disk has stalled.
//
//	request ──▶ interceptor ──▶ picker ──▶ a member that is not late
//	                                          │ answers no request for a while
//	                                          ▼
//	                              it is asked for the revision ──▶ no answer for as long again: late
//	                                          └── answer, sooner or later: not late
//
// Reads that wait for a late member are made again at another one. Writes are not, as their outcome is unknown. A
// member that works on a long answer is not late, since it answers the short question meanwhile. If half of the members
// are late, the cluster is, and none is avoided.
package avoid
