// Package linearizability is what the tests of several packages share that check
// histories of calls with porcupine.
package linearizability
