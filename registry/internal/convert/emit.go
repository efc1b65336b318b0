package convert

import (
	"context"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// Emitting returns b as a [backend.Emitter] if its storage is one, else b itself.
func (b *Backend) Emitting() backend.Backend {
	if emitter, ok := b.Backend.(backend.Emitter); ok {
		return &emittingBackend{b, emitter}
	}
	return b
}

// emittingBackend is a Backend over storage that can emit.
type emittingBackend struct {
	*Backend
	emitter backend.Emitter
}

// Emit emits draft in storage's form. Once that has been done, it is not an error that the emitted
// object cannot be shown: then it is returned as it is.
func (b *emittingBackend) Emit(ctx context.Context, draft *store.Object) (*store.Object, error) {
	draft, err := b.ToStorage(draft)
	if err != nil {
		return nil, err
	}
	o, err := b.emitter.Emit(ctx, draft)
	if err != nil {
		return nil, err
	}
	if shown, err := b.FromStorage(o); err == nil {
		o = shown
	}
	return o, nil
}
