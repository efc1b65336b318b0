// Package waiting has the common part of watches of backends with history in memory: the
// list of watches that have read everything and wait for a notification, and a Close
// that waits for a running one.
//
//	Watcher.Next finds nothing ──Add──▶ List ◀──Take── a commit ──WakeAll──▶ Notify of each
package waiting
