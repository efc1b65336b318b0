package backend

import (
	"fmt"
	"iter"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/tree"
	"github.com/watchmill/watchmill/usercode"
)

// Scan is what a backend reads for one page of a list. Every backend uses it like
// this:
//
//	ListOptions ──Scan──▶ Scan ──Check──▶ read keys under Prefix, > After, ──Page──▶ List
//	  (validated)              (in range)  at Revision, in order
type Scan struct {
	// Prefix is that of the keys.
	Prefix string
	// Revision is the state to read; zero means the newest.
	Revision store.Revision
	// After is less than all keys of the page: the last key of the previous page or,
	// for a list with a Start, the greatest string below it.
	After string
	// Limit is the most objects to return; zero means all.
	Limit int
	// State: the caller accepts [List].State in place of objects.
	State bool
	// Timeline is that of the [Token], which backends ignore.
	Timeline string

	continued bool
}

// Scan validates o and returns its scan. Errors: [store.ErrInvalidKey],
// [store.ErrInvalidContinue], [usercode.ErrConfig].
func (o ListOptions) Scan() (Scan, error) {
	if err := store.ValidatePrefix(o.Prefix); err != nil {
		return Scan{}, err
	}
	if o.Limit < 0 {
		return Scan{}, &usercode.ConfigError{Field: "ListOptions.Limit", Problem: fmt.Sprintf("is %d, which is negative; zero lists everything", o.Limit)}
	}
	if err := store.ValidatePrefix(o.Start); err != nil {
		return Scan{}, err
	}
	if o.Continue == "" {
		return Scan{
			Prefix: o.Prefix, Revision: o.Revision, After: store.Before(o.Start), Limit: o.Limit,
			State: o.State && o.Prefix == "" && o.Start == "",
		}, nil
	}
	if o.Revision != 0 {
		return Scan{}, &usercode.ConfigError{Field: "ListOptions.Revision", Problem: "cannot be set together with Continue, which has a revision already; leave it zero"}
	}
	token, err := ParseToken(o.Continue)
	if err != nil {
		return Scan{}, err
	}
	if !store.HasPrefix(token.Start, o.Prefix) {
		return Scan{}, &TokenError{Reason: "it belongs to a list of another prefix"}
	}
	if token.Start < o.Start {
		return Scan{}, &TokenError{Reason: "it belongs to a list that starts at another key"}
	}
	return Scan{Prefix: o.Prefix, Revision: token.Revision, After: token.Start, Limit: o.Limit, Timeline: token.Timeline, continued: true}, nil
}

// Check reports whether storage can serve the scan, whose newest revision is current and
// whose history begins at compacted. Errors:
// [store.ErrExpired] (for a continued list as an [*ExpiredContinueError]),
// [store.ErrFuture] (for a continued list also [store.ErrInvalidContinue],
// since storage makes no such token).
func (s Scan) Check(compacted, current store.Revision) error {
	switch {
	case s.Revision > current:
		future := &store.FutureError{Requested: s.Revision, Current: current}
		if s.continued {
			return &TokenError{Reason: "its revision has not happened in this storage", Cause: future}
		}
		return future
	case s.Revision != 0 && s.Revision < compacted:
		expired := &store.ExpiredError{Requested: s.Revision, Oldest: compacted}
		if s.continued {
			return &ExpiredContinueError{Expired: expired, Continue: Token{Start: s.After}.Encode()}
		}
		return expired
	}
	return nil
}

// Page makes the page of objects, which must be all that the scan covers, in key order,
// at revision at. It reads all of them, to count those that remain.
func Page(s Scan, at store.Revision, objects iter.Seq[*store.Object]) *List {
	page := &List{Revision: at, Items: []*store.Object{}}
	for o := range objects {
		if s.Limit > 0 && len(page.Items) == s.Limit {
			page.Remaining++
			continue
		}
		page.Items = append(page.Items, o)
	}
	page.addContinue(s)
	return page
}

// StatePage is [Page] of the objects of a state. It reads only those of the page, and counts
// the rest with [tree.View.Count], so that all pages of a list together cost no more than
// its objects.
func StatePage(s Scan, at store.Revision, state *tree.View) *List {
	page := &List{Revision: at, Items: []*store.Object{}}
	for o := range state.All(s.Prefix, s.After) {
		if s.Limit > 0 && len(page.Items) == s.Limit {
			page.Remaining = state.Count(s.Prefix, page.Items[s.Limit-1].Key)
			break
		}
		page.Items = append(page.Items, o)
	}
	page.addContinue(s)
	return page
}

// addContinue adds the token of the next page, if there is one.
func (l *List) addContinue(s Scan) {
	if l.Remaining > 0 {
		l.Continue = Token{Revision: l.Revision, Start: l.Items[s.Limit-1].Key}.Encode()
	}
}

// Validate returns what is wrong with o, independently of the state of storage.
// Errors: [store.ErrInvalidKey], [usercode.ErrConfig].
func (o WatchOptions) Validate() error {
	if o.Notify == nil {
		return &usercode.ConfigError{Field: "WatchOptions.Notify", Problem: "is nil; give a function that makes the consumer call Next"}
	}
	return store.ValidatePrefix(o.Prefix)
}

// Check reports whether a watch can start at o.From, in storage whose newest revision is
// current and whose history begins at compacted. Errors:
// [store.ErrExpired], [store.ErrFuture].
func (o WatchOptions) Check(compacted, current store.Revision) error {
	switch {
	case o.From > current:
		return &store.FutureError{Requested: o.From, Current: current}
	case o.From != 0 && o.From < compacted:
		return &store.ExpiredError{Requested: o.From, Oldest: compacted}
	}
	return nil
}

// Validate returns what is wrong with o, as a [*usercode.ConfigError].
func (o PutOptions) Validate() error {
	if o.TTL != 0 && o.KeepExpiry {
		return &usercode.ConfigError{Field: "PutOptions.KeepExpiry", Problem: fmt.Sprintf("is set together with a TTL of %v; give one of them", o.TTL)}
	}
	return validateTTL("PutOptions", o.TTL, "the object never expires")
}

// Expires returns the expiry of an object that replaces prev, or nil, and is written at
// a time; the zero time means never.
func (o PutOptions) Expires(written time.Time, prev *store.Object) time.Time {
	switch {
	case o.TTL > 0:
		return written.Add(o.TTL)
	case o.KeepExpiry && prev != nil:
		return prev.Expires
	}
	return time.Time{}
}

// validateTTL refuses a negative TTL of the struct with that name. zero is what zero means,
// for the error.
func validateTTL(options string, ttl time.Duration, zero string) error {
	if ttl < 0 {
		return &usercode.ConfigError{Field: options + ".TTL", Problem: fmt.Sprintf("is %v, which is negative; zero means that %s", ttl, zero)}
	}
	return nil
}
