// Package report is what a run of a scenario has to say: as data, as text, as
// JSON, as a page, and in comparison with other runs.
//
//	load ──▶ Report ──▶ WriteText   summary for a terminal
//	            │  ├──▶ WriteHTML   one page with charts, nothing loaded from elsewhere
//	            │  └──▶ WriteJSON ──▶ file ──ReadJSON──┐
//	            └──────────────────────────────────────┴─▶ Compare ──▶ WriteText
//
// The JSON has a version, [Schema], and SCHEMA.md lists its fields with their
// units. Times are in seconds, memory in bytes.
//
// [Compare] takes several runs of each side, since one run of each cannot tell a
// change from noise; it leaves statistics to golang.org/x/perf/benchmath.
//
// A Report that is not changed may be read, written and compared by several
// goroutines at once.
package report
