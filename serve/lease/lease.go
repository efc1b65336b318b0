// Package lease is the kind Lease of coordination.k8s.io, so that leader election works
// against a server of package serve, with stock clients.
//
//	client-go leaderelection ──Lease, protobuf──▶ serve ──Decoders──▶ JSON ──▶ registry.Store
//	                         ◀──Lease, JSON────── serve ◀─────────────────────────┘
//
// A server that loses its leases, such as one in memory that restarts, or one that is restored from a copy, may let
// another candidate lead at once. The leader before leads on until its RenewDeadline, 10 s by default. So keep leases in
// durable storage.
//
// There is no coordinated leader election: spec.strategy and spec.preferredHolder are dropped.
//
// Typed clients of Kubernetes' own kinds send protobuf and take JSON as an answer; so
// the kind decodes protobuf, and nothing here encodes it.
//
// The package is a module of its own, since Kubernetes' API types weigh more than all
// the rest that a server needs.
package lease

import (
	"context"

	coordination "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/protobuf"
	"github.com/watchmill/watchmill/registry/strategic"
)

// Lease names a leader, and for how long it leads without renewing.
type Lease = coordination.Lease

// Config returns the configuration of the kind, for [registry.New]. Set its Engine to
// choose the storage of leases.
func Config() registry.Config[Lease] {
	return registry.Config[Lease]{
		Kind:     registry.Kind{Group: coordination.GroupName, Version: "v1", Kind: "Lease"},
		Columns:  []registry.Column[Lease]{{Name: "Holder", Type: "string", Description: "What holds the lease.", Value: holder}},
		Strategy: registry.Strategy[Lease]{Prepare: prepare, Validate: validate, CreateOnUpdate: true, RevisionRequired: true, NoGeneration: true},
		Decoders: protobuf.Decoders[Lease]("Lease"), StrategicMerge: strategic.New,
	}
}

// New opens a store of leases over an engine of its own. Close it when done.
//
// Errors: [engine.ErrConfig].
func New(e engine.Config[Lease]) (*registry.Store[Lease], error) {
	cfg := Config()
	cfg.Engine = e
	return registry.New(cfg)
}

func holder(l *Lease) any {
	if l.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.Spec.HolderIdentity
}

// prepare drops what asks a coordinator to choose the holder, as Kubernetes does without one: candidates
// would wait for it.
func prepare(_ context.Context, l, _ *Lease) { l.Spec.Strategy, l.Spec.PreferredHolder = nil, nil }

// validate refuses a lease that no candidate could hold, since it would have ended at once,
// and a negative count.
func validate(_ context.Context, l, _ *Lease) (wrong field.ErrorList) {
	path := field.NewPath("spec")
	if n := l.Spec.LeaseDurationSeconds; n != nil && *n <= 0 {
		wrong = append(wrong, field.Invalid(path.Child("leaseDurationSeconds"), *n, "must be greater than 0"))
	}
	if n := l.Spec.LeaseTransitions; n != nil && *n < 0 {
		wrong = append(wrong, field.Invalid(path.Child("leaseTransitions"), *n, "must be greater than or equal to 0"))
	}
	return wrong
}
