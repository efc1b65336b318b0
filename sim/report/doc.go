// Package report is what a run of a scenario has to say: as data, as text, as
// JSON, as a page, and in comparison with another run.
//
//	load ──▶ Report ──▶ WriteText   summary for a terminal
//	            │  ├──▶ WriteHTML   one page with charts, nothing loaded from elsewhere
//	            │  └──▶ WriteJSON ──▶ file ──ReadJSON──┐
//	            └──────────────────────────────────────┴─▶ Compare ──▶ WriteText
//
// The JSON has a version, [Schema]. Times are in seconds, memory in bytes.
package report
