// Package pages reads the pages of a bbolt file without trusting them.
//
//	       page 0  page 1            2 … high-water mark
//	file ┌───────┬───────┬──────────┬──────┬────────┬──────┬ … ┐
//	     │ meta  │ meta  │ freelist │ leaf │ branch │ free │   │
//	     └───┬───┴───┬───┴────▲─────┴──▲───┴───┬────┴──────┴───┘
//	         └─newer─┘ ReadMetas      │       │
//	               └──────────────────┴───────┘ Walk: each page exactly once
//
// bbolt maps the file into memory and follows what it finds there: a damaged
// page makes it panic, and a file cut short faults. So a file is walked by this
// package first, with reads at offsets: every page below the high-water mark must be used
// exactly once or be free, every element must lie inside its page, and all keys
// must be in order. What is found wrong is a [Problem] that names the page; no
// content of a file makes this package panic, loop, or allocate more than the
// file is large.
//
// The same walk hands out all items, so that a file can be checked, and what is
// left of a damaged one be read, in one pass.
package pages
