package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry/internal/jsonlimit"
	"github.com/watchmill/watchmill/registry/internal/patch"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// Apply is server-side apply: it sets the fields of the object under key that config has,
// and leaves the others alone. config is the JSON, or YAML, of an object with apiVersion,
// kind, and the fields that opts.Manager is to own. Fields that the manager owned, and
// that config no longer has, are removed unless other managers own them too. created
// reports that there was no object. Config.Apply must be set.
//
// Errors: a [*FieldConflictError] if other managers own fields that config changes,
// unless opts.Force takes them; [engine.ErrConflict] if config has a resourceVersion or a
// uid that is not the object's, or if there is no object and it has one;
// [engine.ErrUnsupported] without Config.Apply; and as for Update, except
// [engine.ErrNotFound].
func (s *Store[T]) Apply(ctx context.Context, key string, config []byte, opts WriteOptions) (o *engine.Object[T], created bool, err error) {
	return s.applyTo(ctx, key, "", config, opts)
}

// ApplyStatus is Apply of the status and the metadata alone, or of only the status with
// [Strategy].StatusOnly. It creates nothing.
//
// Errors: [engine.ErrNotFound] if there is no object, [engine.ErrUnsupported] if the kind has
// no status subresource, and as for Apply.
func (s *Store[T]) ApplyStatus(ctx context.Context, key string, config []byte, opts WriteOptions) (*engine.Object[T], error) {
	if err := s.core.checkStatus(key); err != nil {
		return nil, err
	}
	o, _, err := s.applyTo(ctx, key, statusSubresource, config, opts)
	return o, err
}

func (s *Store[T]) applyTo(ctx context.Context, key, subresource string, config []byte, opts WriteOptions) (*engine.Object[T], bool, error) {
	o, created, err := s.core.apply(ctx, key, subresource, config, opts)
	return store.As[engine.Object[T]](o), created, err
}

// applies reports whether the store has server-side apply, or the server that a replica
// passes writes on to.
func (c *core) applies() bool {
	_, passedOn := c.forwarder.(ApplyForwarder)
	return passedOn || c.applier != nil
}

// apply applies a configuration to the object under key.
func (c *core) apply(ctx context.Context, key, subresource string, config []byte, opts WriteOptions) (*store.Object, bool, error) {
	if err := c.mayApply(key, &opts); err != nil {
		return nil, false, err
	}
	if c.forwarder != nil {
		return forwarding{c}.apply(ctx, key, subresource, config, opts)
	}
	desired, err := c.readConfig(key, config, &c.kind, &opts)
	if err != nil {
		return nil, false, err
	}
	if subresource == statusSubresource && c.statusOnly {
		desired[metadataField] = identityOf(desired[metadataField].(map[string]any))
	}
	opts.applied = true
	return c.update(ctx, key, subresource, func(old *store.Object) (*store.Object, error) {
		return c.merge(key, old, desired, subresource, &opts)
	}, opts)
}

// mayApply refuses an apply where there is none, and one without a manager.
func (c *core) mayApply(key string, opts *WriteOptions) error {
	switch {
	case !c.applies():
		return fmt.Errorf("apply %q: %w: Config.Apply is not set", key, engine.ErrUnsupported)
	case opts.Manager == "":
		return badRequest("WriteOptions.Manager is empty: an apply must name its manager")
	}
	return nil
}

var errNested = badRequest("the configuration is nested more than %d deep", jsonlimit.MaxDepth)

// readConfig returns the configuration of that kind for the object under key.
func (c *core) readConfig(key string, text []byte, kind *Kind, opts *WriteOptions) (config map[string]any, err error) {
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		err := checkSent(text)
		if errors.Is(err, jsonlimit.ErrDepth) {
			err = errNested
		}
		if err != nil {
			return nil, err
		}
	}
	var strict []error
	panicked := usercode.Call("Config.Apply", key, func() { config, strict, err = c.applier.Decode(text) })
	switch {
	case panicked != nil:
		return nil, panicked
	case err != nil:
		return nil, &BadRequestError{Reason: "the configuration does not parse: " + err.Error(), Cause: err}
	}
	if jsonlimit.TooDeep(config) {
		return nil, errNested
	}
	if err := identify(key, config, kind); err != nil {
		return nil, err
	}
	return config, opts.judge(strict)
}

// orNone returns the value of a field for a text, which says so if there is none.
func orNone(value any) any {
	if value == nil {
		return "none"
	}
	return value
}

// identify refuses a configuration of another kind, and fills in the name.
func identify(key string, config map[string]any, kind *Kind) error {
	want := kind.GroupVersionKind()
	if config["apiVersion"] != want.GroupVersion().String() || config["kind"] != want.Kind {
		return badRequest("the configuration must have apiVersion: %s and kind: %s; it has %v and %v",
			want.GroupVersion(), want.Kind, orNone(config["apiVersion"]), orNone(config["kind"]))
	}
	if config[metadataField] == nil {
		config[metadataField] = map[string]any{}
	}
	meta, isObject := config[metadataField].(map[string]any)
	if !isObject {
		return badRequest("metadata must be an object")
	}
	if meta[managedField] != nil {
		return badRequest("metadata.managedFields must not be in a configuration: the server makes them")
	}
	if meta["name"] == nil || meta["name"] == "" {
		_, meta["name"] = SplitKey(key)
	}
	return nil
}

// identityOf returns the fields of metadata that say which object, in which state, is meant.
func identityOf(meta map[string]any) map[string]any {
	identity := map[string]any{}
	for _, name := range []string{"name", "namespace", "uid", versionField} {
		if value, given := meta[name]; given {
			identity[name] = value
		}
	}
	return identity
}

// merge returns the draft that a configuration makes of old.
func (c *core) merge(key string, old *store.Object, config map[string]any, subresource string, opts *WriteOptions) (*store.Object, error) {
	live, err := c.fieldsOf(old)
	if err != nil {
		return nil, err
	}
	var merged map[string]any
	panicked := usercode.Call("Config.Apply", key, func() {
		merged, err = c.applier.Apply(live, config, c.manager(subresource, opts), opts.Force)
	})
	if panicked != nil {
		return nil, panicked
	}
	if err != nil {
		return nil, err
	}
	text, rounds, err := patch.EncodeMerged(merged)
	if err != nil {
		return nil, badRequest("the configuration cannot be encoded as JSON: %v", err)
	}
	if err := c.checkGrowth(text, old, opts); err != nil {
		return nil, err
	}
	draft, err := c.decode(text, opts)
	if rounds && errors.As(err, new(*BadRequestError)) {
		err = &BadRequestError{Reason: fmt.Sprintf("an apply to an object with an integer of 2^63 or more would round it; write the object by an update or another patch: %v", err), Cause: err}
	}
	return draft, err
}

// ApplyForwarder is implemented by a [Forwarder] whose server has server-side apply.
type ApplyForwarder interface {
	// ForwardApply applies a configuration to the object under key, or to the
	// subresource of it.
	ForwardApply(ctx context.Context, key, subresource string, config []byte, opts WriteOptions) (answer []byte, created bool, err error)
}

// apply passes on a configuration.
func (f forwarding) apply(ctx context.Context, key, subresource string, config []byte, opts WriteOptions) (*store.Object, bool, error) {
	if err := f.checkApply(ctx, key, subresource, &opts); err != nil {
		return nil, false, err
	}
	answer, created, err := f.forwarder.(ApplyForwarder).ForwardApply(ctx, key, subresource, config, opts)
	if err != nil {
		return nil, false, err
	}
	o, err := f.decodeAnswer(answer)
	return o, created, unread("apply", key, err)
}

// checkApply checks what the server cannot know: which object is meant, and whether the
// writer may create it. If it may not, the options name the object that there is: the server would
// create it if it were gone by then.
func (f forwarding) checkApply(ctx context.Context, key, subresource string, opts *WriteOptions) error {
	var refusal error
	named := opts.UID != "" || opts.Revision != 0
	if opts.MayCreate != nil && subresource == "" && !named {
		refusal = opts.MayCreate(ctx)
	}
	if !named && refusal == nil {
		return nil
	}
	live, err := f.live(ctx, key, subresource == "", opts)
	switch {
	case err != nil:
		return err
	case live == nil:
		return refusal
	case refusal != nil:
		opts.UID = string(f.meta(live).GetUID())
	}
	return nil
}
