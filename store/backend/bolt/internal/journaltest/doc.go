// Package journaltest has journals for tests: one that fails as it is told, and
// one that remembers what was written, to tell what a power cut could have left
// of it.
package journaltest
