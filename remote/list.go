package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// tokenMark begins continue tokens that hold one of the server's. Other tokens name a
// key, after which the protocol cannot begin a list; see listBehind.
const tokenMark = "remote:"

// List returns a page of objects in the server's order, which is that of keys. Without a
// limit it is all of them, even if the server returns them in several pages. A list that
// continues after a key, and not by a token of the server's, requests the whole state, for
// each of its pages anew, since the protocol cannot begin a list there.
//
// A list with State begins the watch that is to follow, too, from the list's revision and with NoPrev. It is
// closed if it is not asked for within ten minutes after the last part of the list or of its further pages has
// arrived, or by the next such list. A past state whose changes the server no longer has is then refused as expired.
//
// The StoreID of a list is what the answer tells. If the answer tells nothing, it is what
// the server told last before the request: a later one may be of other storage.
//
// Errors: a [*store.ExpiredError], or a [*backend.ExpiredContinueError], if the revision
// is no longer kept; [store.ErrFuture]; a [*backend.TokenError]; and as for
// [Backend.Get].
func (b *Backend) List(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	if err := b.open(); err != nil {
		return nil, err
	}
	token, continued := strings.CutPrefix(opts.Continue, tokenMark)
	if continued {
		opts.Continue = ""
	}
	scan, err := opts.Scan()
	if err != nil {
		return nil, err
	}
	if scan.After != "" {
		list, err := b.listBehind(ctx, scan)
		if expired, is := errors.AsType[*store.ExpiredError](err); is && opts.Continue != "" {
			err = &backend.ExpiredContinueError{Expired: expired, Continue: backend.Token{Start: scan.After}.Encode()}
		}
		return list, err
	}
	scan.State = scan.State && !continued
	query := url.Values{}
	switch {
	case continued:
		query.Set("continue", token)
	case scan.Revision > 0:
		query.Set("resourceVersion", scan.Revision.String())
		query.Set("resourceVersionMatch", "Exact")
	}
	if scan.Limit > 0 {
		query.Set("limit", strconv.Itoa(scan.Limit))
	}
	r, last := b.collection(scan.Prefix), b.lastStorage()
	if scan.State || continued {
		r.part = b.keepHold
	}
	var first *page
	if scan.State {
		first, err = b.pageToWatch(ctx, r, query, scan.Revision)
	} else {
		first, err = b.page(ctx, r, query)
		err = listError(err, scan.Revision, continued)
	}
	if err != nil {
		return nil, err
	}
	list := first.list(last)
	if scan.Limit > 0 {
		return list, nil
	}
	return b.readOn(ctx, r, list, first.size, continued)
}

// readOn adds the pages that follow list, which r has read in size bytes: it has no limit, but the
// server, or a gateway before it, pages by itself. A page of another state is
// [backend.ErrUnavailable]: a new list may be whole.
func (b *Backend) readOn(ctx context.Context, r *request, list *backend.List, size int, continued bool) (*backend.List, error) {
	for list.Continue != "" {
		page, err := b.page(ctx, r, url.Values{"continue": {strings.TrimPrefix(list.Continue, tokenMark)}})
		if err != nil {
			return nil, listError(err, list.Revision, continued)
		}
		if size += page.size; size > b.config.MaxListBytes {
			return nil, b.tooLarge(r)
		}
		next := page.list(list.StoreID)
		if problem := unfit(list, next); problem != "" {
			return nil, fmt.Errorf("%w: %s: the pages of the server's list %s", backend.ErrUnavailable, b.config.URL, problem)
		}
		list.Items, list.Continue, list.Remaining = append(list.Items, next.Items...), next.Continue, next.Remaining
	}
	return list, nil
}

// unfit returns why next is not the page that follows list, "" if it is.
func unfit(list, next *backend.List) string {
	switch {
	case next.Revision != list.Revision:
		return fmt.Sprintf("are of the revisions %d and %d", list.Revision, next.Revision)
	case next.StoreID != list.StoreID && list.StoreID != "": // not told before
		return fmt.Sprintf("are of the storages %q and %q", list.StoreID, next.StoreID)
	case next.Continue == list.Continue:
		return "do not end: one names itself as the next"
	}
	return ""
}

// listBehind lists the whole state at the revision, and drops the objects up to the key
// that the page begins after.
func (b *Backend) listBehind(ctx context.Context, scan backend.Scan) (*backend.List, error) {
	all, err := b.List(ctx, backend.ListOptions{Prefix: scan.Prefix, Revision: scan.Revision})
	if err != nil {
		return nil, err
	}
	behind := all.Items[:0]
	for _, o := range all.Items {
		if o.Key > scan.After {
			behind = append(behind, o)
		}
	}
	all.Items = behind
	if scan.Limit > 0 && len(behind) > scan.Limit {
		all.Items, all.Remaining = behind[:scan.Limit], len(behind)-scan.Limit
		all.Continue = backend.Token{Revision: all.Revision, Start: behind[scan.Limit-1].Key}.Encode()
	}
	return all, nil
}

// listError returns err as the error that backends have for it.
func listError(err error, rev store.Revision, continued bool) error {
	var status *StatusError
	switch {
	case !errors.As(err, &status):
		return err
	case errors.Is(err, store.ErrExpired):
		expired := &store.ExpiredError{Requested: rev, Oldest: status.oldest()}
		if !continued {
			return errors.Join(expired, err)
		}
		offer := &backend.ExpiredContinueError{Expired: expired}
		if status.Status.Continue != "" {
			offer.Continue = tokenMark + status.Status.Continue
		}
		return offer
	case continued && status.Status.Code == http.StatusBadRequest:
		return &backend.TokenError{Reason: "the server refuses it", Cause: err}
	}
	return err
}
