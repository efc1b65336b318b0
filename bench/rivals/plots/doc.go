// Package plots draws what a run of the benchmarks has measured, as SVG:
//
//	compare.Report ──Write──▶ watchers.svg       deliveries by number of watchers, ours and the rivals'
//	                          subscribers.svg    the same as a bus
//	                          growth-writes.svg  writes as watchers and objects become more
//	                          growth-p99.svg     their latency
//
// Points are medians of the rounds, bars reach from the least to the most. A plot of
// workloads that did not run is left out.
package plots
