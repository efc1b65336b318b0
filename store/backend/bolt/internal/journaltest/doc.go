// Package journaltest has journals for tests: one that fails on demand, and one that
// records all writes to disk, to compute what a power cut could leave of them.
package journaltest
