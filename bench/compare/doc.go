// Package compare runs contenders on the same workloads in turn and compares
// their figures.
//
//	Plan ──Run──▶ per round: ours, each rival, the floor ──▶ Report ──▶ JSON
//	                         (every other round backwards)      │
//	                                                           └─Rows──▶ one table
//
// All contenders run in one process, one after the other, with a garbage
// collection between two of them, so that within the short time of a round other load on
// the machine affects all of them alike. Ratios are computed within a round, and
// their median is compared with the goals. Memory is the difference of the live heap
// before and after the work, measured in a process of its own for each run.
package compare
