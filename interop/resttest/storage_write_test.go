package resttest_test

import (
	"context"
	"encoding/json"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
)

func (s *storage) Create(ctx context.Context, obj runtime.Object, _ rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	body, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	it, err := s.resource.Create(ctx, request.NamespaceValue(ctx), body, registry.WriteOptions{DryRun: len(options.DryRun) > 0})
	if err != nil {
		return nil, s.status(err, obj.(*Widget).Name)
	}
	return decode(it)
}

func (s *storage) Update(
	ctx context.Context, name string, info rest.UpdatedObjectInfo, _ rest.ValidateObjectFunc, _ rest.ValidateObjectUpdateFunc,
	_ bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	opts := registry.WriteOptions{DryRun: len(options.DryRun) > 0}
	if p := info.Preconditions(); p != nil && p.UID != nil {
		opts.UID = string(*p.UID)
	}
	it, created, err := s.resource.Update(ctx, s.key(ctx, name), func(live registry.Item) ([]byte, error) {
		old := &Widget{}
		if !live.IsZero() {
			var err error
			if old, err = decode(live); err != nil {
				return nil, err
			}
		}
		next, err := info.UpdatedObject(ctx, old)
		if err != nil {
			return nil, err
		}
		return json.Marshal(next)
	}, opts)
	if err != nil {
		return nil, false, s.status(err, name)
	}
	w, err := decode(it)
	return w, created, err
}

func (s *storage) Delete(ctx context.Context, name string, _ rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	opts, err := s.deleteOptions(name, options)
	if err != nil {
		return nil, false, err
	}
	it, gone, err := s.resource.Delete(ctx, s.key(ctx, name), opts)
	if err != nil {
		return nil, false, s.status(err, name)
	}
	if gone && !s.returnsDeleted {
		return &metav1.Status{Status: metav1.StatusSuccess}, true, nil
	}
	w, err := decode(it)
	return w, gone, err
}

func (s *storage) DeleteCollection(
	ctx context.Context, _ rest.ValidateObjectFunc, options *metav1.DeleteOptions, which *internalversion.ListOptions,
) (runtime.Object, error) {
	opts, err := s.deleteOptions("", options)
	if err != nil {
		return nil, err
	}
	page, err := s.resource.DeleteCollection(ctx, s.which(ctx, which), opts)
	if err != nil {
		return nil, s.status(err, "")
	}
	return listOf(&page)
}

// deleteOptions returns the registry's options for those of a deletion; none means at
// once, without grace.
func (s *storage) deleteOptions(name string, o *metav1.DeleteOptions) (registry.DeleteOptions, error) {
	if o == nil {
		return registry.DeleteOptions{GracePeriodSeconds: new(int64)}, nil
	}
	opts := registry.DeleteOptions{DryRun: len(o.DryRun) > 0, GracePeriodSeconds: o.GracePeriodSeconds}
	if o.PropagationPolicy != nil {
		opts.Propagation = *o.PropagationPolicy
	}
	p := o.Preconditions
	if p == nil {
		return opts, nil
	}
	if p.UID != nil {
		opts.UID = string(*p.UID)
	}
	if p.ResourceVersion != nil {
		rev, err := strconv.ParseUint(*p.ResourceVersion, 10, 64)
		if err != nil {
			return opts, apierrors.NewConflict(s.kind().GroupResource(), name, err)
		}
		opts.Revision = engine.Revision(rev)
	}
	return opts, nil
}
