package registry

import (
	"context"
	"errors"
	"fmt"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry/internal/objectmeta"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/usercode"
)

// nameAttempts is how often a generated name that is taken is replaced by another.
const nameAttempts = 8

// create stores a draft with defaults in the namespace.
func (c *core) create(ctx context.Context, draft *store.Object, namespace string, opts WriteOptions) (*store.Object, error) {
	m := c.meta(draft)
	key := c.kind.Key(namespace, m.GetName())
	ctx = ofSubresource(ctx, "")
	if err := rules(key, func() error { return c.beginCreate(ctx, draft, namespace, &opts) }); err != nil {
		return nil, err
	}
	if m.GetName() != "" || m.GetGenerateName() == "" {
		return c.tryCreate(ctx, draft, &opts)
	}
	for range nameAttempts {
		attempt, err := c.layout.DeepClone(draft) // the rules of one attempt must not see what those of another have made
		if err != nil {
			return nil, err
		}
		c.meta(attempt).SetName(objectmeta.GenerateName(m.GetGenerateName()))
		o, err := c.tryCreate(ctx, attempt, &opts)
		if !errors.Is(err, engine.ErrExists) {
			return o, err
		}
	}
	return nil, &GeneratedNameError{Base: m.GetGenerateName()}
}

// rules runs the rules of the kind for the object under key and returns a panic of theirs as
// an error, as storage does for those of an update.
func rules(key string, run func() error) (err error) {
	if panicked := usercode.Call("Strategy or Admitter", key, func() { err = run() }); panicked != nil {
		return panicked
	}
	return err
}

// beginCreate runs the steps of a creation that happen once, before its name is generated.
func (c *core) beginCreate(ctx context.Context, draft *store.Object, namespace string, opts *WriteOptions) error {
	m := c.meta(draft)
	if !noRevision(m.GetResourceVersion()) {
		return badRequest("resourceVersion should not be set on objects to be created")
	}
	m.SetResourceVersion("")
	if err := c.setNamespace(m, namespace); err != nil {
		return err
	}
	c.setTypeMeta(draft)
	objectmeta.DropSystemFields(m)
	if c.kind.Status {
		c.layout.TakeStatus(draft, nil)
	}
	c.trackFields(draft, nil, "", opts)
	if err := c.callAdmitters(ctx, &Admission{Kind: c.kind, Operation: OperationCreate, Object: c.pointer(draft), DryRun: opts.DryRun}); err != nil {
		return err
	}
	dedupOwners(m, opts)
	objectmeta.Identify(m, c.timestamp())
	if c.noGeneration {
		m.SetGeneration(0)
	}
	return nil
}

// tryCreate stores the draft under its name.
func (c *core) tryCreate(ctx context.Context, draft *store.Object, opts *WriteOptions) (*store.Object, error) {
	if err := rules(c.keyOf(draft), func() error { return c.finishDraft(ctx, draft, nil, opts) }); err != nil {
		return nil, err
	}
	if opts.DryRun {
		return c.pretendCreate(ctx, draft)
	}
	o, err := c.storage.Create(ctx, draft, backend.CreateOptions{TTL: c.ttl})
	if c.applier != nil && errors.Is(err, backend.ErrTooLarge) && len(c.meta(draft).GetManagedFields()) > 0 {
		c.meta(draft).SetManagedFields(nil)
		return c.storage.Create(ctx, draft, backend.CreateOptions{TTL: c.ttl})
	}
	return o, err
}

// finishDraft prepares, validates and canonicalizes a draft for storage.
func (c *core) finishDraft(ctx context.Context, draft, old *store.Object, opts *WriteOptions) error {
	c.prepare(ctx, draft, old)
	c.countGeneration(draft, old)
	if err := c.check(ctx, draft, old, opts); err != nil {
		return err
	}
	c.canonicalize(draft)
	if c.canonicalizes {
		c.countGeneration(draft, old) // of what is stored
	}
	if old != nil {
		c.keepTimes(draft, old)
	}
	return nil
}

// countGeneration gives a draft the generation of old, or the next one if its spec differs.
func (c *core) countGeneration(draft, old *store.Object) {
	if old == nil || c.noGeneration {
		return
	}
	generation := c.meta(old).GetGeneration()
	if !c.sameSpec(draft, old) {
		generation++
	}
	c.meta(draft).SetGeneration(generation)
}

// sameSpec reports whether two objects are equal in what generations count changes of. The status is
// left out only where it is a subresource: elsewhere it is a field as any other.
func (c *core) sameSpec(a, b *store.Object) bool {
	return c.layout.SameSpec(a, b) && (c.kind.Status || c.layout.SameStatus(a, b))
}

// pretendCreate returns the object that a creation would store.
func (c *core) pretendCreate(ctx context.Context, draft *store.Object) (*store.Object, error) {
	draft.Key = c.keyOf(draft)
	_, err := c.storage.Get(ctx, draft.Key)
	switch {
	case err == nil:
		return nil, fmt.Errorf("create %q: %w", draft.Key, engine.ErrExists)
	case errors.Is(err, engine.ErrNotFound):
		return c.pretended(draft)
	}
	return nil, err
}
