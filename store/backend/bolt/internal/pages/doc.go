// Package pages reads the pages of a bbolt file without trusting them.
//
//	       page 0  page 1            2 … high-water mark
//	file ┌───────┬───────┬──────────┬──────┬────────┬──────┬ … ┐
//	     │ meta  │ meta  │ freelist │ leaf │ branch │ free │   │
//	     └───┬───┴───┬───┴────▲─────┴──▲───┴───┬────┴──────┴───┘
//	         └─newer─┘ ReadMetas      │       │
//	               └──────────────────┴───────┘ Walk: each page exactly once
//
// bbolt maps the file into memory and trusts its contents: a damaged page makes it panic,
// and a truncated file faults. So this package walks the file first, with reads at
// offsets: every page below the high-water mark must be used exactly once or be free,
// every element must be inside its page, and all keys must be in order. Each error is a
// [Problem] that names the page; no content of a file makes this package panic, loop, or
// allocate more than the size of the file.
//
// The same walk returns all items, so that checking a file and reading the rest of a
// damaged one takes one pass.
package pages
