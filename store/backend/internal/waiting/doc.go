// Package waiting is what backends that hold their history in memory share about
// those who follow it: a list of the followers that have read everything, and the
// end of each that waits for a notification which is running.
package waiting
