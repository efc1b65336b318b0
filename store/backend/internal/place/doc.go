// Package place has the common part of watches of backends with history in memory: a place
// in the history, from which the events under a prefix are read.
//
//	chunks of the window ▪▪▪▪│▪▪▪▪│▪▪ ──Read──▶ events under the prefix
//	                         ▲ At, Through
package place
