package engine

import (
	"fmt"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// query is ListOptions, parsed and validated.
type query struct {
	filter *store.Filter
	read   Read
	// start is the key to start at, "" for the first. The keys of the page are greater
	// than after: the last key of the previous page, or the greatest string before start.
	start, after string
	// continued: it is not the first page.
	continued bool
	// timeline is that of the previous page, as its token names it; empty if the token names
	// none.
	timeline string
	limit    int
}

func newQuery(cfg *settings, opts ListOptions) (query, error) {
	invalid := func(problem string) error { return fmt.Errorf("%w: %s", ErrInvalidList, problem) }
	if opts.Limit < 0 {
		return query{}, invalid("Limit is negative; zero lists everything")
	}
	if err := opts.Read.validate(); err != nil {
		return query{}, fmt.Errorf("%w: %w", ErrInvalidList, err)
	}
	filter, err := store.NewFilter(cfg.schema.Fields, store.FilterOptions{
		Key: opts.Key, Prefix: opts.Prefix, Labels: opts.Labels, Fields: opts.Fields,
		LabelSelector: opts.LabelSelector, FieldSelector: opts.FieldSelector, NoLabels: cfg.noLabels,
	})
	if err != nil {
		return query{}, err
	}
	if err := store.ValidatePrefix(opts.Start); err != nil {
		return query{}, err
	}
	if opts.Start != "" && opts.Key != "" {
		return query{}, invalid("Start cannot be set together with Key, which is all there is; leave it out")
	}
	q := query{filter: filter, read: opts.Read, start: opts.Start, after: store.Before(opts.Start), limit: opts.Limit}
	if q.read.mode == cached && cfg.cached() {
		q.limit = 0
	}
	if opts.Continue == "" {
		return q, nil
	}
	if opts.Read != Latest() {
		return query{}, invalid("Read cannot be set together with Continue, which holds the state already; leave it out")
	}
	return q.continueFrom(opts.Continue, opts.Prefix)
}

// continueFrom returns the query for the page that a token requests.
func (q query) continueFrom(token, prefix string) (query, error) {
	scan, err := backend.ListOptions{Prefix: prefix, Start: q.start, Limit: q.limit, Continue: token}.Scan()
	if err != nil {
		return query{}, err
	}
	q.after, q.continued, q.timeline = scan.After, true, scan.Timeline
	if scan.Revision > 0 {
		q.read = Exactly(scan.Revision)
	}
	return q, nil
}

// cheap reports whether the backend can answer without reading everything.
func (q query) cheap() bool { return q.limit > 0 && !q.filter.HasSelector() }
