// Package pipeline is the classical client of a list-watch, for watchers that consume by a
// queue. Its final state must be that of any other watcher.
package pipeline
