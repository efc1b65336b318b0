// Package journaltest has journals for tests: one that fails on demand, and one that
// records all writes to disk, to compute what a power cut could leave of them.
//
//	queue of writes ──▶ Faulty: a Fault each ──▶ the journal under test
//
//	file before and after a transaction ──▶ Recorder ──▶ Commit ──Crash──▶ files to open
package journaltest
