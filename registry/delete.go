package registry

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry/internal/objectmeta"
	"github.com/watchmill/watchmill/registry/internal/reads"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// deletePage is how many objects deleteCollection reads at once.
const deletePage = 10_000

// errMarkFirst: something keeps the object, so it can only be marked. errMayGo: nothing
// keeps it, so it can be deleted at once.
var (
	errMarkFirst = errors.New("the object must be marked as being deleted")
	errMayGo     = errors.New("the object may be deleted")
)

// delete deletes the object under key, or marks it, unless the store is a replica, which passes
// that on. The live object decides which: remove and markDeleted each refuse the other's case, and
// take turns until one of them fits.
func (c *core) delete(ctx context.Context, key string, opts DeleteOptions) (o *store.Object, gone bool, err error) {
	if err := opts.validate(); err != nil {
		return nil, false, err
	}
	if c.forwarder != nil {
		return forwarding{c}.delete(ctx, key, opts)
	}
	if opts.GracePeriodSeconds != nil && *opts.GracePeriodSeconds < 0 {
		opts.GracePeriodSeconds = new(int64(1)) // as in Kubernetes
	}
	ctx = ofSubresource(ctx, "")
	for {
		o, err = c.remove(ctx, key, &opts)
		if !errors.Is(err, errMarkFirst) {
			return o, err == nil, err
		}
		o, err = c.markDeleted(ctx, key, &opts)
		if !errors.Is(err, errMayGo) {
			return o, false, err
		}
	}
}

// remove deletes the object if nothing keeps it, and returns its last state.
func (c *core) remove(ctx context.Context, key string, opts *DeleteOptions) (*store.Object, error) {
	var last *store.Object
	o, err := c.storage.Delete(ctx, key, backend.DeleteOptions{
		Validate: func(ctx context.Context, current *store.Object) error {
			last = current
			return c.mayRemove(ctx, current, opts)
		},
	})
	if _, ok := errors.AsType[*settled](err); ok {
		o, err = last, nil
	}
	if err != nil {
		return nil, err
	}
	return c.withoutGrace(o, opts), nil
}

// withoutGrace returns o, which is deleted, with its grace period ended if it had one.
func (c *core) withoutGrace(o *store.Object, opts *DeleteOptions) *store.Object {
	if !objectmeta.InGrace(c.meta(o)) {
		return o
	}
	last := c.layout.Clone(o)
	*last = *o
	c.setDeletion(c.meta(last), o, opts)
	return last
}

// mayRemove decides whether current may be deleted at once.
func (c *core) mayRemove(ctx context.Context, current *store.Object, opts *DeleteOptions) error {
	if err := c.checkPreconditions(current, opts.UID, opts.Revision); err != nil {
		return err
	}
	if c.keeps(current, opts) {
		return errMarkFirst
	}
	if err := c.callAdmitters(ctx, &Admission{Kind: c.kind, Operation: OperationDelete, Old: c.pointer(current), DryRun: opts.DryRun}); err != nil {
		return err
	}
	if opts.DryRun {
		return &settled{}
	}
	return nil
}

// keeps reports whether finalizers, a period of grace or the rules of the kind keep the object.
func (c *core) keeps(o *store.Object, opts *DeleteOptions) bool {
	return len(c.finalizersOf(o, opts)) > 0 || c.gracePeriod(o, opts) > 0 || c.keep(o)
}

// finalizersOf returns the finalizers that the deletion leaves the object. One that does not shorten a period of
// grace under way changes nothing.
func (c *core) finalizersOf(o *store.Object, opts *DeleteOptions) []string {
	m := c.meta(o)
	if !c.garbageCollected || objectmeta.InGrace(m) && c.gracePeriod(o, opts) == *m.GetDeletionGracePeriodSeconds() {
		return m.GetFinalizers()
	}
	return objectmeta.Propagated(m.GetFinalizers(), opts.Propagation)
}

// gracePeriod returns the grace period of a deletion in seconds, zero for none.
func (c *core) gracePeriod(o *store.Object, opts *DeleteOptions) int64 {
	return objectmeta.GracePeriod(c.meta(o), opts.GracePeriodSeconds, func(asked *int64) (int64, bool) { return c.grace(o, asked) })
}

// markDeleted marks the object as being deleted. One that is too large with the mark loses its managed fields.
func (c *core) markDeleted(ctx context.Context, key string, opts *DeleteOptions) (*store.Object, error) {
	unrecorded := false
	mark := func(ctx context.Context, current *store.Object) (*store.Object, error) {
		if err := c.checkPreconditions(current, opts.UID, opts.Revision); err != nil {
			return nil, err
		}
		if !c.keeps(current, opts) {
			return nil, errMayGo
		}
		if err := c.callAdmitters(ctx, &Admission{Kind: c.kind, Operation: OperationDelete, Old: c.pointer(current), DryRun: opts.DryRun}); err != nil {
			return nil, err
		}
		draft := c.layout.Clone(current)
		c.setDeletion(c.meta(draft), current, opts)
		if c.meta(current).GetDeletionTimestamp() == nil {
			c.terminate(draft)
		}
		c.meta(draft).SetFinalizers(c.finalizersOf(current, opts))
		if unrecorded {
			c.meta(draft).SetManagedFields(nil)
		}
		if opts.DryRun {
			*draft = *current
			return nil, &settled{draft: draft}
		}
		return draft, c.unlessStored(ctx, draft, current)
	}
	o, err := c.storage.GuaranteedUpdate(ctx, key, mark, backend.UpdateOptions{})
	if errors.Is(err, backend.ErrTooLarge) {
		unrecorded = true
		o, err = c.storage.GuaranteedUpdate(ctx, key, mark, backend.UpdateOptions{})
	}
	if end, ok := errors.AsType[*settled](err); ok {
		return end.draft, nil
	}
	return o, err
}

// setDeletion sets the object's time of deletion and its grace period.
func (c *core) setDeletion(m metav1.Object, current *store.Object, opts *DeleteOptions) {
	objectmeta.Mark(m, c.gracePeriod(current, opts), c.timestamp())
}

// deleteCollection deletes the objects that which selects, page by page, and returns their last
// states, even if it fails. Objects that are gone by then are left out. With a limit it deletes
// one page of that many, and there is a token for those after it. The revision is not less than
// that of any object.
func (c *core) deleteCollection(ctx context.Context, which engine.ListOptions, opts DeleteOptions) (deleted reads.Page, err error) {
	limit := which.Limit
	switch {
	case limit == 0:
		which.Limit = deletePage
	case which.Read == engine.Cached():
		which.Read = engine.Latest() // a cached list ignores the limit, and has no token for the others
	}
	for {
		page, err := c.engine.List(ctx, which)
		if rest, expired := errors.AsType[*backend.ExpiredContinueError](err); expired && limit == 0 {
			which.Continue = rest.Continue // the deletions so far have displaced the first page's revision
			continue
		}
		if err != nil {
			return deleted, err
		}
		deleted.Revision = max(deleted.Revision, page.Revision)
		for _, o := range page.Items {
			last, _, err := c.delete(ctx, o.Key, opts)
			switch {
			case err == nil:
				deleted.Items, deleted.Revision = append(deleted.Items, last), max(deleted.Revision, last.Revision)
			case !errors.Is(err, engine.ErrNotFound) || errors.As(err, new(*AdmissionError)):
				return deleted, err
			}
		}
		if page.Continue == "" || limit > 0 {
			deleted.Continue = page.Continue
			return deleted, nil
		}
		which.Continue, which.Read = page.Continue, engine.Latest()
	}
}
