// Package sample keeps a sample of the lists that readers of a load make. Comparing a list with the state of its
// revision takes a look at every write, which is too much for each of them.
//
//	list ──Keeps──▶ no: only its revision is judged
//	         └────▶ yes ──Keep──▶ Lists: some of all times, of some selections ──All──▶ judge
package sample
