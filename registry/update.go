package registry

import (
	"context"
	"errors"
	"fmt"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry/internal/objectmeta"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// statusSubresource is the name of the subresource for the status.
const statusSubresource = "status"

// produceFunc returns the object that an update is to store, as a draft with defaults.
// old is nil if there is no object.
type produceFunc func(old *store.Object) (*store.Object, error)

// completed returns produce without the fields that the kind does not have, and with defaults set.
func (c *core) completed(produce produceFunc, opts *WriteOptions) produceFunc {
	return func(old *store.Object) (*store.Object, error) {
		draft, err := produce(old)
		if err != nil {
			return nil, err
		}
		if draft, err = c.prunedDraft(draft, opts); err != nil {
			return nil, err
		}
		c.setDefaults(draft)
		return draft, nil
	}
}

// updating is one update under way.
type updating struct {
	*core
	key, subresource string
	produce          produceFunc
	opts             WriteOptions
	// created: the last attempt has found no object.
	created bool
}

// settled ends an update without storing: by a dry run, because storage has the object
// already, or because the object has to be deleted in place of the update. It is an error only
// to storage.
type settled struct {
	draft *store.Object
	// at is the revision to delete; zero if nothing is deleted.
	at engine.Revision
}

func (*settled) Error() string { return "the update is settled without storing" }

// subresourceKey is the key of the subresource in the context of a write.
type subresourceKey struct{}

// SubresourceOf returns which subresource a write is of, for the functions of a [Strategy] and an [Admitter], which get
// ctx: "" for the object itself, which a creation and a deletion are of, "status", "scale", or one of [Kind].Parts.
func SubresourceOf(ctx context.Context) string {
	name, _ := ctx.Value(subresourceKey{}).(string)
	return name
}

// ofSubresource returns the context of a write of a subresource, "" for the object itself. It may be within another
// write, as that of an admitter is.
func ofSubresource(ctx context.Context, name string) context.Context {
	if SubresourceOf(ctx) == name {
		return ctx
	}
	return context.WithValue(ctx, subresourceKey{}, name)
}

// update replaces the object under key by what produce returns.
func (c *core) update(ctx context.Context, key, subresource string, produce produceFunc, opts WriteOptions) (o *store.Object, created bool, err error) {
	u := &updating{core: c, key: key, subresource: subresource, produce: produce, opts: opts}
	ctx = ofSubresource(ctx, subresource)
	for {
		o, err = c.storage.GuaranteedUpdate(ctx, key, u.next, backend.UpdateOptions{
			CreateIfMissing: (c.createOnUpdate || opts.applied) && subresource == "", TTL: c.ttl,
		})
		if c.applier != nil && !u.opts.unrecorded && errors.Is(err, backend.ErrTooLarge) {
			u.opts.unrecorded = true
			continue
		}
		end, isSettled := errors.AsType[*settled](err)
		if !isSettled {
			return o, u.created && err == nil, err
		}
		if end.at == 0 {
			return end.draft, u.created, nil
		}
		o, err = c.deleteSettled(ctx, key, end)
		if errors.Is(err, engine.ErrPrecondition) || errors.Is(err, engine.ErrNotFound) {
			continue // another write came first: the next attempt decides anew
		}
		return o, false, err
	}
}

// deleteSettled deletes the object under key in place of an update, and returns the draft as its last
// state.
func (c *core) deleteSettled(ctx context.Context, key string, end *settled) (*store.Object, error) {
	gone, err := c.storage.Delete(ctx, key, backend.DeleteOptions{Preconditions: backend.Preconditions{Revision: end.at}})
	if err != nil {
		return nil, err
	}
	*end.draft = *gone
	return end.draft, backend.Describe(&c.form.schema, end.draft)
}

// next returns the object that replaces current.
func (u *updating) next(ctx context.Context, current *store.Object) (*store.Object, error) {
	u.created = current == nil
	if current != nil {
		if err := u.checkPreconditions(current, u.opts.UID, u.opts.Revision); err != nil {
			return nil, err
		}
	} else if u.opts.UID != "" || u.opts.Revision != 0 {
		return nil, noSuchObject(u.key)
	}
	draft, err := u.produce(current)
	if err != nil {
		return nil, err
	}
	if current == nil {
		return u.nextNew(ctx, draft)
	}
	return u.nextOf(ctx, draft, current)
}

// noSuchObject is the error of a write that may create an object, but names one that is not there.
func noSuchObject(key string) error {
	return &ConflictError{Key: key, Reason: "Precondition failed: there is no such object"}
}

// nextNew returns the object that an update creates.
func (u *updating) nextNew(ctx context.Context, draft *store.Object) (*store.Object, error) {
	m := u.meta(draft)
	if !noRevision(m.GetResourceVersion()) {
		return nil, &ConflictError{Key: u.key, Reason: "there is no such object: leave resourceVersion out to create it"}
	}
	if uid := m.GetUID(); uid != "" { // of an object that is gone
		return nil, &ConflictError{Key: u.key, Reason: fmt.Sprintf("there is no object with the uid %s: leave uid out to create one", uid)}
	}
	namespace, _ := SplitKey(u.key)
	if u.opts.MayCreate != nil {
		if err := u.opts.MayCreate(ctx); err != nil {
			return nil, err
		}
	}
	if err := u.beginCreate(ctx, draft, namespace, &u.opts); err != nil {
		return nil, err
	}
	if err := u.checkKey(draft); err != nil {
		return nil, err
	}
	if err := u.finishDraft(ctx, draft, nil, &u.opts); err != nil {
		return nil, err
	}
	return u.settle(ctx, draft, nil)
}

// nextOf returns the object that replaces current, which is not nil.
func (u *updating) nextOf(ctx context.Context, draft, current *store.Object) (*store.Object, error) {
	m, old := u.meta(draft), u.meta(current)
	if err := u.setNamespace(m, old.GetNamespace()); err != nil {
		return nil, err
	}
	if err := u.checkKey(draft); err != nil {
		return nil, err
	}
	if err := u.checkPreconditions(current, string(m.GetUID()), 0); err != nil {
		return nil, err
	}
	if err := u.checkRevision(m.GetResourceVersion(), current, u.revisionRequired && u.opts.unread); err != nil {
		return nil, err
	}
	m.SetResourceVersion("")
	objectmeta.KeepSystemFields(m, old)
	draft = u.keepToPart(draft, current)
	u.setTypeMeta(draft)
	u.trackFields(draft, current, u.subresource, &u.opts)
	a := &Admission{
		Kind: u.kind, Operation: OperationUpdate, Subresource: u.subresource,
		Object: u.pointer(draft), Old: u.pointer(current), DryRun: u.opts.DryRun,
	}
	if err := u.callAdmitters(ctx, a); err != nil {
		return nil, err
	}
	dedupOwners(u.meta(draft), &u.opts)
	if err := u.finishDraft(ctx, draft, current, &u.opts); err != nil {
		return nil, err
	}
	return u.settle(ctx, draft, current)
}

// checkKey refuses an update that changes the object's key.
func (u *updating) checkKey(draft *store.Object) error {
	if got := u.keyOf(draft); got != u.key {
		_, name := SplitKey(u.key)
		return badRequest("the name of the object, %q, is not that of the request, %q", u.meta(draft).GetName(), name)
	}
	return nil
}

// keepToPart keeps an update to its part of the object: status, or the rest. An update
// of the scale has changed nothing else; those of further parts are for the kind's rules.
func (u *updating) keepToPart(draft, current *store.Object) *store.Object {
	switch {
	case !u.kind.Status, u.subresource == scaleSubresource:
		return draft
	case u.subresource != statusSubresource:
		u.layout.TakeStatus(draft, current)
		return draft
	}
	whole := u.layout.Draft(current)
	u.layout.TakeStatus(whole, draft)
	to, from := u.meta(whole), u.meta(draft)
	to.SetManagedFields(from.GetManagedFields())
	if u.statusOnly {
		return whole
	}
	objectmeta.CopyClientFields(to, from)
	return whole
}

// settle returns the draft, or a [*settled] for a dry run, for an object that is to be deleted
// instead, and for one that storage has already.
func (u *updating) settle(ctx context.Context, draft, current *store.Object) (*store.Object, error) {
	if u.opts.DryRun {
		draft.Key = u.key
		if current != nil {
			*draft = *current
		}
		shown, err := u.pretended(draft)
		if err != nil {
			return nil, err
		}
		return nil, &settled{draft: shown}
	}
	if current != nil && objectmeta.MayBeRemoved(u.meta(draft)) && !u.keep(draft) {
		return nil, &settled{draft: draft, at: current.Revision}
	}
	return draft, u.unlessStored(ctx, draft, current)
}
