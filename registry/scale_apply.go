package registry

import (
	"context"
	"encoding/json"

	"github.com/watchmill/watchmill/registry/internal/scale"
	"github.com/watchmill/watchmill/store"
)

// Apply applies a scale: its manager owns the number of replicas from then on, in the object.
func (r *scaleResource) Apply(ctx context.Context, key string, config []byte, opts WriteOptions) (Item, bool, error) {
	if err := r.mayApply(key, &opts); err != nil {
		return Item{}, false, err
	}
	if r.forwarder != nil {
		return r.changed(forwarding{r.core}.applyScale(ctx, key, config, opts))
	}
	return r.changed(r.applyScale(ctx, key, config, opts))
}

// applyScale applies a scale to the object under key.
func (c *core) applyScale(ctx context.Context, key string, config []byte, opts WriteOptions) (*store.Object, bool, error) {
	desired, err := c.readConfig(key, config, &scaleKind, &opts)
	if err != nil {
		return nil, false, err
	}
	text, err := json.Marshal(desired)
	if err != nil {
		return nil, false, badRequest("the configuration cannot be encoded as JSON: %v", err)
	}
	s, err := c.decodeScale(text, &opts)
	if err != nil {
		return nil, false, err
	}
	if spec, _ := desired["spec"].(map[string]any); spec["replicas"] == nil {
		return nil, false, badRequest("the configuration has no number of replicas: set spec.replicas")
	}
	identity := identityOf(desired[metadataField].(map[string]any)) // the rest of a scale's metadata is not its own
	opts.applied = true
	return c.update(ctx, key, scaleSubresource, func(old *store.Object) (*store.Object, error) {
		of, err := c.configOfScale(old, s)
		if err != nil {
			return nil, err
		}
		kind := c.kind.GroupVersionKind()
		of["apiVersion"], of["kind"], of[metadataField] = kind.GroupVersion().String(), kind.Kind, identity
		draft, err := c.merge(key, old, of, scaleSubresource, &opts)
		if err != nil {
			return nil, err
		}
		return draft, c.checkReplicas(draft, s.Spec.Replicas)
	}, opts)
}

// checkReplicas refuses an object that has another number of replicas than an apply has asked for,
// for example because its kind leaves zero out.
func (f *form) checkReplicas(o *store.Object, want int32) error {
	n, _, err := f.scale.Get(o)
	if err != nil {
		return err
	}
	if n != want {
		return badRequest("%d replicas cannot be applied to this object: set them by an update or another patch", want)
	}
	return nil
}

// configOfScale returns the fields of an object that have the number of replicas, with the number
// of a scale. They are the fields that differ between the object with this number and with another.
func (c *core) configOfScale(live *store.Object, s *scale.Object) (map[string]any, error) {
	wanted, err := c.fieldsOfScaled(live, s)
	if err != nil {
		return nil, err
	}
	contrast, err := c.fieldsOfScaled(live, s.Another())
	if err != nil {
		return nil, err
	}
	return scale.Differing(wanted, contrast), nil
}

// fieldsOfScaled returns the fields of an object with the number of replicas of a scale.
func (c *core) fieldsOfScaled(live *store.Object, s *scale.Object) (map[string]any, error) {
	draft, err := c.scaled(live, s)
	if err != nil {
		return nil, err
	}
	return c.fieldsOf(draft)
}

// applyScale passes on the configuration of a scale.
func (f forwarding) applyScale(ctx context.Context, key string, config []byte, opts WriteOptions) (*store.Object, bool, error) {
	live, err := f.live(ctx, key, false, &opts)
	if err != nil {
		return nil, false, err
	}
	answer, _, err := f.forwarder.(ApplyForwarder).ForwardApply(ctx, key, scaleSubresource, config, opts)
	if err != nil {
		return nil, false, err
	}
	o, err := f.decodeScaleAnswer(answer, live)
	return o, false, unread("apply", key, err)
}
