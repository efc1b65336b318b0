// Package compare runs contenders on the same workloads in turn and compares
// their figures.
//
//	Plan ──Run──▶ per round: ours, each rival, the floor ──▶ Report ──▶ JSON
//	                         (every other round backwards)      │
//	                                                           └─Rows──▶ one table
//
// All contenders run in one process, one after the other, with a garbage
// collection in between, so that within the short time of a round other load on
// the machine affects all of them alike. Ratios are taken within a round, and
// their median is compared with the goals. Memory is the live heap before and
// after, each time in a process of its own.
package compare
