// Package compare runs contenders at the same work in turns, and says who is
// ahead.
//
//	Plan ──Run──▶ per round: ours, each rival, the floor ──▶ Report ──▶ JSON
//	                         (every other round backwards)      │
//	                                                           └─Rows──▶ one table
//
// All contenders run in one process, one after the other, with a collection of
// garbage in between: they share whatever the machine is doing, and a round is
// short enough for that to stay the same. A ratio is taken within a round, and
// the median of these ratios is what goals are held against. Memory is measured
// as what is live before and after, each time in a process of its own.
package compare
