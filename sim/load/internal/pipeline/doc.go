// Package pipeline is the classical client of a list-watch, for watchers that consume by a
// queue: a DeltaFIFO collects the changes by object, and a goroutine pops them and puts them
// into an indexer. Its final state must be that of any other watcher.
//
//	Follow ─Replace Add Update Delete─▶ DeltaFIFO ─Pop─▶ Indexer
//	                                        ▲               │
//	                                        └──── Known ────┘
package pipeline
