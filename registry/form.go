package registry

import (
	"context"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry/internal/layout"
	"github.com/watchmill/watchmill/registry/internal/objectmeta"
	"github.com/watchmill/watchmill/registry/internal/scale"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// form is a kind's Go type and rules without type parameters: functions that take objects
// and know the type of their values.
type form struct {
	kind    Kind
	schema  store.Schema
	layout  layout.Layout
	columns []ColumnInfo

	meta         func(*store.Object) metav1.Object
	typeMeta     func(*store.Object) schema.ObjectKind
	setDefaults  func(*store.Object)
	prepare      func(ctx context.Context, o, old *store.Object)
	validate     func(ctx context.Context, o, old *store.Object) field.ErrorList
	validateName func(name string, prefix bool) []string
	warnings     func(ctx context.Context, o, old *store.Object) []string
	canonicalize func(*store.Object)
	grace        func(o *store.Object, asked *int64) (int64, bool)
	keep         func(o *store.Object) bool
	terminate    func(*store.Object)
	prune        func(*store.Object) []string // only if the kind prunes
	cells        []func(*store.Object) any
	scale        *scale.Functions // nil if there is none

	unstructured, createOnUpdate, noGeneration, revisionRequired, statusOnly, prunes, canonicalizes, noName, noAge bool
}

// defaultDraft sets the defaults of a draft that is not of an update. The error is a
// panic of Strategy.Default.
func (f *form) defaultDraft(draft *store.Object) error {
	return usercode.Call("Strategy.Default", f.meta(draft).GetName(), func() { f.setDefaults(draft) })
}

// pruneDraft removes the fields of a draft that the kind does not have, and judges the draft by
// these and by other problems. The error may be a panic of Config.Prune.
func (f *form) pruneDraft(draft *store.Object, wrong []error, opts *WriteOptions) error {
	if f.prunes {
		var paths []string
		if err := usercode.Call("Config.Prune", f.meta(draft).GetName(), func() { paths = f.prune(draft) }); err != nil {
			return err
		}
		for _, path := range paths {
			wrong = append(wrong, fmt.Errorf("unknown field %q", path))
		}
	}
	return opts.judge(wrong)
}

// prunedDraft returns the draft of a value in the process as pruneDraft leaves it. If the kind prunes,
// it prunes a copy: the value may share what it holds with the caller, and with the stored object.
func (f *form) prunedDraft(draft *store.Object, opts *WriteOptions) (*store.Object, error) {
	if !f.prunes {
		return draft, nil
	}
	own, err := f.layout.DeepClone(draft)
	if err != nil {
		return nil, err
	}
	return own, f.pruneDraft(own, nil, opts)
}

// valueOf returns a pointer to the value of o, nil if there is no object.
func valueOf[T any](o *store.Object) *T {
	if o == nil {
		return nil
	}
	return &store.As[engine.Object[T]](o).Value
}

// formOf returns the form of the kind that cfg describes.
func formOf[T any, P Ptr[T]](cfg *Config[T]) *form {
	s := &cfg.Strategy
	f := &form{
		kind:     cfg.Kind,
		schema:   engineConfig[T, P](cfg).Schema(),
		meta:     func(o *store.Object) metav1.Object { return P(valueOf[T](o)) },
		typeMeta: func(o *store.Object) schema.ObjectKind { return P(valueOf[T](o)).GetObjectKind() },

		setDefaults: func(o *store.Object) {
			if s.Default != nil {
				s.Default(valueOf[T](o))
			}
		},
		prepare: func(ctx context.Context, o, old *store.Object) {
			if s.Prepare != nil {
				s.Prepare(ctx, valueOf[T](o), valueOf[T](old))
			}
		},
		validate: func(ctx context.Context, o, old *store.Object) field.ErrorList {
			if s.Validate == nil {
				return nil
			}
			return s.Validate(ctx, valueOf[T](o), valueOf[T](old))
		},
		validateName: objectmeta.NameRule(s.ValidateName),
		warnings: func(ctx context.Context, o, old *store.Object) []string {
			if s.Warn == nil {
				return nil
			}
			return s.Warn(ctx, valueOf[T](o), valueOf[T](old))
		},
		canonicalize: func(o *store.Object) {
			if s.Canonicalize != nil {
				s.Canonicalize(valueOf[T](o))
			}
		},
		grace: func(o *store.Object, asked *int64) (int64, bool) {
			if s.Grace == nil {
				return 0, false
			}
			return s.Grace(valueOf[T](o), asked)
		},
		keep: func(o *store.Object) bool { return s.Keep != nil && s.Keep(valueOf[T](o)) },
		terminate: func(o *store.Object) {
			if s.Terminate != nil {
				s.Terminate(valueOf[T](o))
			}
		},
		prune:          func(o *store.Object) []string { return cfg.Prune(valueOf[T](o)) },
		scale:          cfg.Scale.functions(),
		createOnUpdate: s.CreateOnUpdate, noGeneration: s.NoGeneration, revisionRequired: s.RevisionRequired, statusOnly: s.StatusOnly, prunes: cfg.Prune != nil, canonicalizes: s.Canonicalize != nil, noName: cfg.NoName, noAge: cfg.NoAge,
	}
	for _, c := range cfg.Columns {
		f.columns = append(f.columns, ColumnInfo{c.Name, c.Type, c.Format, c.Description, c.Priority})
		f.cells = append(f.cells, func(o *store.Object) any { return c.Value(valueOf[T](o)) })
	}
	_, f.unstructured = any(P(new(T))).(runtime.Unstructured)
	f.layout = layout.Of(&f.schema, f.meta, reflect.TypeFor[T](), cfg.Kind.GroupVersionKind())
	return f
}

// setTypeMeta sets the object's apiVersion and kind.
func (f *form) setTypeMeta(o *store.Object) {
	f.typeMeta(o).SetGroupVersionKind(f.kind.GroupVersionKind())
}

// keyOf returns the key that follows from an object's metadata.
func (f *form) keyOf(o *store.Object) string {
	m := f.meta(o)
	return f.kind.Key(m.GetNamespace(), m.GetName())
}
