// Package expiry is what backends that hold their state in memory share about
// time: an alarm with one timer, and the objects that have a TTL in the order in
// which they are to go.
package expiry
