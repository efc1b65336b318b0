// Package waiting is shared by backends with history in memory, for the watches that
// follow it: a list of the followers that have read everything, and the
// end of each that waits for a notification which is running.
package waiting
