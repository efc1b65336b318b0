// Package informers has the informers of a load, and handlers that check what they are told.
//
//	engine ──▶ informer ──▶ Handler: does each notification fit its state?
//	                           │     how old is it, once the load has begun?
//	                           └──▶ at the end: has it the last write of every key?
//
// # Concurrency
//
// A handler is called by its informer while the load reads the counts of a [Group]. What a Group says of handlers
// is for the time when the load is over.
package informers
