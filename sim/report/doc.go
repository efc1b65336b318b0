// Package report has the results of a run of a scenario, and shows them as text, as
// JSON, as a page with charts, and in comparison with other runs.
//
//	load ──▶ Report ──▶ WriteText   summary for a terminal
//	            │  ├──▶ WriteHTML   one page with charts, nothing loaded from elsewhere
//	            │  └──▶ WriteJSON ──▶ file ──ReadJSON──┐
//	            └──────────────────────────────────────┴─▶ Compare ──▶ WriteText
//
// The JSON has a version, [Schema], and SCHEMA.md lists its fields with their
// units. Times are in seconds, memory in bytes.
//
// [Compare] takes several runs of each side, because one run of each cannot tell a
// change from noise. The statistics are those of golang.org/x/perf/benchmath.
//
// # Concurrency
//
// A [Report] that is not changed may be read, written and compared by several
// goroutines at once.
package report
